#include <event2/http.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/simulator/auth.h"
#include "tests/simulator/sim.h"
#include "tests/simulator/ticket.h"

#define TICKET_SECONDS 120
#define DEVICES_MAX 64
#define DEVICE_SIZE 40

static int64_t last_ticket;

/* The newest ones; the oldest makes room. */
static struct {
	unsigned int number; /* 0: spent */
	char scope[8];
} devices[DEVICES_MAX];
static unsigned int last_device, last_secret;

int64_t
ticket_issued(void)
{
	return last_ticket;
}

void
ticket_create(struct exchange *x)
{
	char ticket[40], url[256];

	(void)snprintf(
	    ticket, sizeof(ticket), "fake-ticket-%" PRId64, ++last_ticket);
	(void)snprintf(url, sizeof(url), "ws%s/cable?ticket=%s",
	    sim.url + strlen("http"), ticket);
	answer_json(x, HTTP_OK,
	    json_pack("{s:s,s:i,s:s}", "ticket", ticket, "expires_in",
		TICKET_SECONDS, "url", url));
}

static const char *
form_text(const struct exchange *x, const char *key)
{
	const char *text = json_string_value(json_object_get(x->form, key));

	return text == NULL ? "" : text;
}

static void
connection_refuse(struct exchange *x, const char *code)
{
	answer_json(x, HTTP_BADREQUEST, json_pack("{s:s}", "error", code));
}

/* An agent asks to be connected; nobody has to approve it here. */
void
connection_create(struct exchange *x)
{
	const char *scope = form_text(x, "scope");
	char code[DEVICE_SIZE], token_uri[192], verify[192], complete[224];
	size_t at;

	if (*form_text(x, "device_name") == '\0') {
		connection_refuse(x, "invalid_request");
		return;
	}
	at = ++last_device % DEVICES_MAX;
	devices[at].number = last_device;
	(void)snprintf(devices[at].scope, sizeof(devices[at].scope), "%s",
	    auth_scope_within(scope, AUTH_SCOPE_FULL) ? scope
						      : AUTH_SCOPE_FULL);
	(void)snprintf(code, sizeof(code), "fake-device-%u", last_device);
	(void)snprintf(token_uri, sizeof(token_uri),
	    "%s/oauth/agent_connection_tokens", sim.url);
	(void)snprintf(verify, sizeof(verify), "%s/connect", sim.url);
	(void)snprintf(
	    complete, sizeof(complete), "%s?user_code=WDJB-MJHT", verify);
	answer_json(x, HTTP_OK,
	    json_pack("{s:s,s:s,s:s,s:s,s:s,s:i,s:i}", "device_code", code,
		"user_code", "WDJB-MJHT", "verification_uri", verify,
		"verification_uri_complete", complete, "token_uri", token_uri,
		"expires_in", 600, "interval", 1));
}

/* The place of a live device code, or -1. */
static int
device_find(const char *code)
{
	char name[DEVICE_SIZE];
	int i;

	for (i = 0; i < DEVICES_MAX; i++) {
		(void)snprintf(
		    name, sizeof(name), "fake-device-%u", devices[i].number);
		if (devices[i].number != 0 && strcmp(name, code) == 0)
			return i;
	}
	return -1;
}

static json_t *
account_json(void)
{
	char text[24];

	if (sim.options.account_id_number)
		return json_integer(sim.account);
	(void)snprintf(text, sizeof(text), "%" PRId64, sim.account);
	return json_string(text);
}

/* Connecting changes the client's secret: another computer loses it. */
void
connection_token_create(struct exchange *x)
{
	struct client *client = world_client(WORLD_CLIENT);
	int at = device_find(form_text(x, "device_code"));
	char secret[64];

	if (at == -1 || client == NULL) {
		connection_refuse(x, "invalid_grant");
		return;
	}
	devices[at].number = 0;
	(void)snprintf(secret, sizeof(secret), "%s-secret-%u", WORLD_CLIENT,
	    ++last_secret);
	text_replace(&client->secret, secret);
	text_replace(&client->scope, devices[at].scope);
	answer_json(x, HTTP_OK,
	    json_pack("{s:s,s:s,s:o,s:s}", "client_id", client->client_id,
		"client_secret", client->secret, "account_id", account_json(),
		"scope", client->scope));
}
