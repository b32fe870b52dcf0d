#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/xmalloc.h"
#include "tests/simulator/auth.h"
#include "tests/simulator/sim.h"

#define HTTP_UNAUTHORIZED 401
#define HTTP_FORBIDDEN 403
#define HTTP_UNSUPPORTED_TYPE 415
#define DEFAULT_LIFETIME 3600

struct token {
	char *value;
	char *scope;
	char *client;
	int64_t person;
};

static struct token *tokens;
static size_t token_count;
static unsigned int minted;

void
auth_init(void)
{
	auth_grant(WORLD_OPERATOR_TOKEN, WORLD_OPERATOR, AUTH_SCOPE_FULL, "");
}

static void
token_remove(size_t at)
{
	free(tokens[at].value);
	free(tokens[at].scope);
	free(tokens[at].client);
	tokens[at] = tokens[--token_count];
}

size_t
auth_revoke(const char *token, const char *client)
{
	size_t at = 0, before = token_count;

	while (at < token_count) {
		if ((token == NULL || strcmp(token, tokens[at].value) == 0) &&
		    (client == NULL || strcmp(client, tokens[at].client) == 0))
			token_remove(at);
		else
			at++;
	}
	return before - token_count;
}

void
auth_grant(
    const char *token, int64_t person, const char *scope, const char *client)
{
	auth_revoke(token, NULL);
	tokens = xreallocarray(tokens, token_count + 1, sizeof(*tokens));
	tokens[token_count++] = (struct token){.value = xstrdup(token),
	    .scope = xstrdup(scope),
	    .client = xstrdup(client),
	    .person = person};
}

size_t
auth_count(void)
{
	return token_count;
}

unsigned int
auth_minted(void)
{
	return minted;
}

static const struct token *
token_of(const struct exchange *x)
{
	const char *header = exchange_header(x, "Authorization");
	size_t i;

	if (header == NULL || strncasecmp(header, "Bearer ", 7) != 0)
		return NULL;
	for (i = 0; i < token_count; i++) {
		if (strcmp(tokens[i].value, header + 7) == 0)
			return &tokens[i];
	}
	return NULL;
}

void
auth_identify(struct exchange *x)
{
	const struct token *token = token_of(x);

	x->caller = token == NULL ? 0 : token->person;
	x->may_write =
	    token != NULL && strcmp(token->scope, AUTH_SCOPE_FULL) == 0;
}

static bool
write_refuses(struct exchange *x)
{
	if (!exchange_is_type(x, "application/json")) {
		answer_empty(x, HTTP_UNSUPPORTED_TYPE);
		return true;
	}
	if (!x->may_write) {
		answer_empty(x, HTTP_FORBIDDEN);
		return true;
	}
	if (!json_is_object(x->body)) {
		answer_json(x, HTTP_BADREQUEST,
		    json_pack("{s:i,s:s}", "status", HTTP_BADREQUEST, "error",
			"Bad Request"));
		return true;
	}
	return false;
}

bool
auth_refuses(struct exchange *x)
{
	auth_identify(x);
	if ((x->route->flags & ROUTE_ACCOUNT) == 0)
		return false;
	if (x->ids[0] != sim.account) {
		answer_empty(x, HTTP_NOTFOUND);
		return true;
	}
	if (world_person(x->caller) == NULL) {
		answer_empty(x, HTTP_UNAUTHORIZED);
		return true;
	}
	return (x->route->flags & ROUTE_WRITE) != 0 && write_refuses(x);
}

bool
auth_scope_within(const char *asked, const char *held)
{
	if (strcmp(asked, "read") == 0)
		return true;
	return strcmp(asked, AUTH_SCOPE_FULL) == 0 &&
	    strcmp(held, AUTH_SCOPE_FULL) == 0;
}

void
auth_server_show(struct exchange *x)
{
	char token[192], device[192];

	(void)snprintf(token, sizeof(token), "%s/oauth/tokens", sim.url);
	(void)snprintf(device, sizeof(device), "%s/oauth/device", sim.url);
	answer_json(x, HTTP_OK,
	    json_pack("{s:s,s:s,s:s,s:[s,s,s]}", "issuer", sim.url,
		"token_endpoint", token, "device_authorization_endpoint",
		device, "grant_types_supported",
		"urn:ietf:params:oauth:grant-type:device_code",
		"client_credentials", "refresh_token"));
}

void
auth_resource_show(struct exchange *x)
{
	answer_json(x, HTTP_OK,
	    json_pack("{s:s,s:[s]}", "resource", sim.url,
		"authorization_servers", sim.url));
}

static const char *
form_value(const struct exchange *x, const char *key)
{
	const char *value = json_string_value(json_object_get(x->form, key));

	return value == NULL ? "" : value;
}

static void
oauth_refuse(struct exchange *x, int status, const char *code)
{
	answer_json(x, status, json_pack("{s:s}", "error", code));
}

static void
token_mint(struct exchange *x, const struct client *client, const char *scope)
{
	char token[40], resource[64];
	int64_t lifetime = client->token_lifetime == 0 ? DEFAULT_LIFETIME
						       : client->token_lifetime;

	(void)snprintf(token, sizeof(token), AUTH_TOKEN_PREFIX "%u", ++minted);
	(void)snprintf(resource, sizeof(resource), "urn:bc:agent:%lld",
	    (long long)client->person_id);
	auth_grant(token, client->person_id, scope, client->client_id);
	answer_json(x, HTTP_OK,
	    json_pack("{s:s,s:s,s:I,s:s,s:s}", "access_token", token,
		"token_type", "bearer", "expires_in", (json_int_t)lifetime,
		"resource", resource, "scope", scope));
}

void
auth_token_create(struct exchange *x)
{
	const struct client *client = world_client(form_value(x, "client_id"));
	const char *scope = form_value(x, "scope");

	if (strcmp(form_value(x, "grant_type"), "client_credentials") != 0) {
		oauth_refuse(x, HTTP_BADREQUEST, "unsupported_grant_type");
		return;
	}
	if (client == NULL || *client->secret == '\0' ||
	    strcmp(client->secret, form_value(x, "client_secret")) != 0) {
		oauth_refuse(x, HTTP_UNAUTHORIZED, "invalid_client");
		return;
	}
	if (*scope == '\0')
		scope = client->scope;
	if (auth_scope_within(scope, client->scope))
		token_mint(x, client, scope);
	else
		oauth_refuse(x, HTTP_BADREQUEST, "invalid_scope");
}

void
auth_authorization_show(struct exchange *x)
{
	const struct person *p = world_person(x->caller);
	char href[192];

	if (p == NULL || p->identity_id == 0) {
		answer_empty(x, HTTP_UNAUTHORIZED);
		return;
	}
	(void)snprintf(
	    href, sizeof(href), "%s/%lld", sim.url, (long long)sim.account);
	answer_json(x, HTTP_OK,
	    json_pack("{s:s,s:{s:I,s:s,s:s,s:s},s:[{s:s,s:I,s:s,s:s,s:s}]}",
		"expires_at", "2036-01-05T09:00:00Z", "identity", "id",
		(json_int_t)p->identity_id, "first_name", p->name, "last_name",
		"", "email_address", "identity@example.com", "accounts",
		"product", "bc3", "id", (json_int_t)sim.account, "name", "Acme",
		"href", href, "app_href", href));
}
