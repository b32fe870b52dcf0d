#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/build_id.h"
#include "common/log.h"
#include "supervisor/child.h"
#include "supervisor/command.h"
#include "supervisor/status.h"
#include "supervisor/watchdog.h"

#define LEDGER_SILENT "the ledger does not answer; see `connectctl status`"

struct command {
	const char *name;
	bool changes; /* needs CONTROL_CHANGE */
	void (*run)(struct client *client, const struct command_request *r);
};

/* ---- what the ledger is asked -------------------------------------------- */

void
command_forget(struct client *client)
{
	struct child *ledger = client->sv->children[ROLE_LEDGER];

	if (client->settlement != NULL)
		settlement_forget(client->settlement);
	else if (client->query != 0)
		peer_forget(ledger->peer, client->query);
	client->settlement = NULL;
	client->query = 0;
	client->restarts = NULL;
	client->will_follow = false;
	client->awaits[0] = '\0';
	if (client->patience != NULL)
		event_free(client->patience);
	client->patience = NULL;
}

/* JSON as it will stand in our line: any control byte would end or fake it. */
static bool
is_one_line(const struct blob *json)
{
	const unsigned char *bytes = json->bytes;
	size_t i;

	for (i = 0; i < json->len; i++) {
		if (bytes[i] < 0x20)
			return false;
	}
	return json->len > 0;
}

static void
status_answer(struct client *client, const char *ledger, size_t len)
{
	struct buffer b = {0};

	status_write(client->sv, &b, ledger, len);
	client_reply(client, b.bytes, b.len);
	buffer_free(&b);
}

/*
 * FAILED's reasons as the control socket's words; any other is `failed`, also
 * `refused`: it is what stands that does not allow it, not who asks.
 */
static const struct {
	const char *reason, *word;
} failed_words[] = {
    {"not_found", "not_found"},
    {"busy", "busy"},
};

void
command_failed(struct client *client, const struct msg_failed *failed)
{
	const char *word = "failed";
	size_t i;

	for (i = 0; i < sizeof(failed_words) / sizeof(failed_words[0]); i++) {
		if (strcmp(failed->reason, failed_words[i].reason) == 0)
			word = failed_words[i].word;
	}
	command_forget(client);
	client_refuse(client, word, "%s", failed->text);
}

/* Status is told without the ledger's part, too. */
static void
ledger_silent(struct client *client)
{
	bool is_status = client->asks_status;

	command_forget(client);
	if (is_status)
		status_answer(client, NULL, 0);
	else
		client_refuse(client, "unavailable", "%s", client->overdue);
}

/* From the answer on it follows: the lines behind it are those after it. */
static void
query_answered(struct peer *peer, struct msg *reply, void *arg)
{
	struct client *client = arg;
	bool is_status = client->asks_status, follow = client->will_follow;

	client->query = 0;
	if (reply->type == MSG_FAILED && is_status) {
		ledger_silent(client);
		return;
	}
	if (reply->type == MSG_FAILED) {
		command_failed(client, &reply->failed);
		return;
	}
	if (!is_one_line(&reply->answer.json)) {
		child_happens(child_of_peer(client->sv, peer), CHILD_WRONG);
		ledger_silent(client);
		return;
	}
	command_forget(client);
	client->follows = follow;
	if (is_status)
		status_answer(
		    client, reply->answer.json.bytes, reply->answer.json.len);
	else
		client_reply(
		    client, reply->answer.json.bytes, reply->answer.json.len);
}

static void
on_overdue(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	ledger_silent(arg);
}

/* A ledger that is not there is not waited for. */
bool
command_ask_ledger(struct client *client, struct msg *m, peer_answer answered,
    void *arg, const char *overdue)
{
	const struct timeval tv = {
	    CONTROL_QUERY_MS / 1000, CONTROL_QUERY_MS % 1000 * 1000};
	struct child *ledger = client->sv->children[ROLE_LEDGER];

	client->overdue = overdue;
	if (ledger == NULL || ledger->state != CHILD_READY ||
	    peer_room(ledger->peer) == 0) {
		client->overdue = LEDGER_SILENT;
		ledger_silent(client);
		return false;
	}
	client_waits(client);
	client->patience = evtimer_new(client->sv->base, on_overdue, client);
	if (client->patience == NULL)
		fatalx("control socket: no event");
	(void)evtimer_add(client->patience, &tv);
	client->query = peer_request(ledger->peer, m, answered, arg);
	watchdog_stir(client->sv);
	return true;
}

static void
ledger_query(
    struct client *client, const char *what, const struct command_request *r)
{
	struct msg m = {.type = MSG_QUERY};

	m.query.what = what;
	m.query.event_id = r->event;
	m.query.count = r->count;
	(void)command_ask_ledger(
	    client, &m, query_answered, client, LEDGER_SILENT);
}

static void
run_status(struct client *client, const struct command_request *r)
{
	client->asks_status = true;
	watchdog_ask(client->sv);
	ledger_query(client, "status", r);
}

static void
run_events(struct client *client, const struct command_request *r)
{
	client->asks_status = false;
	client->will_follow = r->follow;
	ledger_query(client, "events", r);
}

static void
run_show(struct client *client, const struct command_request *r)
{
	client->asks_status = false;
	if (r->event == 0)
		client_refuse(client, "usage", "show: `event` is missing");
	else
		ledger_query(client, "show", r);
}

/* ---- what the supervisor does itself ------------------------------------- */

/* The answer first; the end of the connection is the end of the process. */
static void
run_stop(struct client *client, const struct command_request *r)
{
	struct supervisor *sv = client->sv;
	struct buffer b = {0};

	(void)r;
	buffer_printf(&b, "{\"pid\":%ld}", (long)getpid());
	client_reply(client, b.bytes, b.len);
	buffer_free(&b);
	log_info("uid %ld asks for a stop", (long)client->uid);
	if (!sv->stopping)
		supervisor_stop(sv, 0);
}

static void
restart_answer(struct client *client, const struct child *c)
{
	struct buffer b = {0};

	command_forget(client);
	buffer_printf(&b, "{\"role\":\"%s\",\"pid\":%ld,\"generation\":%lld}",
	    role_name(c->role), (long)c->pid, (long long)c->generation);
	client_reply(client, b.bytes, b.len);
	buffer_free(&b);
}

void
command_child_changed(struct client *client, const struct child *c)
{
	if (client->restarts != c)
		return;
	if (c->state == CHILD_READY &&
	    c->generation > client->restarts_generation) {
		restart_answer(client, c);
	} else if (c->state == CHILD_PARKED || c->state == CHILD_BACKOFF ||
	    c->state == CHILD_DOWN) {
		command_forget(client);
		client_refuse(client, "failed", "%s did not become ready: %s",
		    c->name,
		    c->last_words[0] == '\0' ? child_state_name(c)
					     : c->last_words);
	}
}

static void
run_restart(struct client *client, const struct command_request *r)
{
	struct supervisor *sv = client->sv;
	enum role_id role = ROLE_COUNT;
	struct child *c;

	if (r->role.bytes != NULL && !r->role.has_nul)
		role = role_by_name(r->role.bytes);
	c = role == ROLE_COUNT ? NULL : sv->children[role];
	if (c == NULL) {
		client_refuse(client, "usage",
		    "restart: `role` is one of "
		    "ledger, dispatcher, outbox, intake");
		return;
	}
	if (sv->stopping) {
		client_refuse(client, "busy", "connectd is stopping");
		return;
	}
	log_info(
	    "uid %ld asks for a restart of %s", (long)client->uid, c->name);
	client->restarts = c;
	client->restarts_generation = c->generation;
	client_waits(client);
	child_happens(c, CHILD_RESTART);
}

static void
run_reload(struct client *client, const struct command_request *r)
{
	struct supervisor *sv = client->sv;
	struct buffer b = {0};
	struct error e;

	(void)r;
	log_info("uid %ld asks for a reload", (long)client->uid);
	if (supervisor_reload(sv, &e) == -1) {
		client_refuse(client, "failed", "%s", e.text);
		return;
	}
	buffer_printf(&b, "{\"generation\":%lld}", (long long)sv->generation);
	client_reply(client, b.bytes, b.len);
	buffer_free(&b);
}

static void
run_version(struct client *client, const struct command_request *r)
{
	struct buffer b = {0};

	(void)r;
	buffer_printf(&b,
	    "{\"version\":\"%s\",\"build\":\"%s\",\"protocol\":%d,"
	    "\"schema\":%d}",
	    CONNECTD_VERSION, build_id, PROTOCOL_VERSION, SCHEMA_VERSION);
	client_reply(client, b.bytes, b.len);
	buffer_free(&b);
}

/* ---- a request ----------------------------------------------------------- */

static const struct command commands[] = {
    {"status", false, run_status},
    {"events", false, run_events},
    {"show", false, run_show},
    {"version", false, run_version},
    {"redispatch", true, run_redispatch},
    {"discard", true, run_discard},
    {"resolve", true, run_resolve},
    {"settle", true, run_settle},
    {"stop", true, run_stop},
    {"restart", true, run_restart},
    {"reload", true, run_reload},
    {"token", true, run_token},
};

static const char *const members[] = {"command", "event", "count", "follow",
    "role", "intent", "receipt", "nonce", "resolution", "attempt", "gone"};

static const struct command *
command_find(const struct json_text *name)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!name->has_nul &&
		    strcmp(commands[i].name, name->bytes) == 0)
			return &commands[i];
	}
	return NULL;
}

/* A member we do not know might have been meant to change what is done. */
static int
request_check_members(json_t *object, struct error *e)
{
	const char *name;
	json_t *value;
	size_t i;

	json_object_foreach (object, name, value) {
		for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
			if (strcmp(name, members[i]) == 0)
				break;
		}
		if (i == sizeof(members) / sizeof(members[0]))
			return error_set(e, "a member that no command has");
	}
	return 0;
}

/* What only decisions have. */
static int
decision_read(json_t *object, struct command_request *r, struct error *e)
{
	if (json_member_id(
		object, "intent", JSON_MAY_BE_ABSENT, &r->intent, e) == -1 ||
	    json_member_id(
		object, "receipt", JSON_MAY_BE_ABSENT, &r->receipt, e) == -1 ||
	    json_member_string(
		object, "nonce", JSON_MAY_BE_ABSENT, &r->nonce, e) == -1 ||
	    json_member_string(object, "resolution", JSON_MAY_BE_ABSENT,
		&r->resolution, e) == -1 ||
	    json_member_string(
		object, "attempt", JSON_MAY_BE_ABSENT, &r->attempt, e) == -1 ||
	    json_member_bool(object, "gone", JSON_MAY_BE_ABSENT, &r->gone, e) ==
		-1)
		return -1;
	return 0;
}

static int
request_read(json_t *object, struct json_text *name, struct command_request *r,
    struct error *e)
{
	if (!json_is_object(object))
		return error_set(e, "a request is an object");
	if (request_check_members(object, e) == -1 ||
	    json_member_string(object, "command", JSON_REQUIRED, name, e) ==
		-1 ||
	    json_member_id(object, "event", JSON_MAY_BE_ABSENT, &r->event, e) ==
		-1 ||
	    json_member_int(
		object, "count", JSON_MAY_BE_ABSENT, &r->count, e) == -1 ||
	    json_member_bool(
		object, "follow", JSON_MAY_BE_ABSENT, &r->follow, e) == -1 ||
	    json_member_string(
		object, "role", JSON_MAY_BE_ABSENT, &r->role, e) == -1 ||
	    decision_read(object, r, e) == -1)
		return -1;
	if (r->count < 0 || r->count > CONTROL_EVENTS_MAX)
		return error_set(
		    e, "`count` is at most %d", CONTROL_EVENTS_MAX);
	return 0;
}

static void
command_execute(struct client *client, json_t *object)
{
	struct command_request r = {.count = 20};
	const struct command *command;
	struct json_text name;
	struct error e;

	if (request_read(object, &name, &r, &e) == -1) {
		client_refuse(client, "usage", "%s", e.text);
		return;
	}
	command = command_find(&name);
	if (command == NULL)
		client_refuse(client, "usage", "no such command");
	else if (command->changes && client->right != CONTROL_CHANGE)
		client_refuse(client, "refused",
		    "%s: only root and the user connectd runs as may",
		    command->name);
	else
		command->run(client, &r);
}

void
command_run(struct client *client, const char *line, size_t len)
{
	const struct json_rules rules = {
	    .max_bytes = CONTROL_LINE_MAX, .max_depth = 2, .max_members = 16};
	struct error e;
	json_t *object = json_read(line, len, &rules, &e);

	if (object == NULL) {
		client_refuse(client, "usage", "%s", e.text);
		return;
	}
	command_execute(client, object);
	json_decref(object);
}
