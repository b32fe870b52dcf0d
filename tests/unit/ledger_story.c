#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/ledger_fixture.h"

bool
record_event(struct fixture *f, int64_t id)
{
	struct msg m = {.type = MSG_RECORD};

	m.record = (struct msg_record){.event_id = id,
	    .lane = "poll",
	    .event_type = "comment.created",
	    .kind = "comment_created",
	    .action = "created",
	    .bucket_id = PROJECT,
	    .creator_id = OPERATOR,
	    .recording_id = RECORDING(id),
	    .created_at = "2026-01-05T08:59:00.500000000Z"};
	return fixture_get(f, &m, ROLE_INTAKE, "", MSG_RECORDED)
	    ->recorded.is_new;
}

struct msg
verdict_of(struct fixture *f, int64_t id, const char *state)
{
	struct msg m = {.type = MSG_VERDICT};

	m.verdict = (struct msg_verdict){.event_id = id,
	    .revision = sql_int(f,
		"SELECT revision FROM events WHERE id = %lld", (long long)id),
	    .rerun = sql_int(f,
		"SELECT COALESCE(MAX(id), 0) FROM decisions"
		" WHERE action = 'redispatch' AND event_id = %lld",
		(long long)id),
	    .state = state,
	    .trigger = "mentioned",
	    .acknowledge = true,
	    .conversation_key = "recording:1",
	    .reply_kind = "comment",
	    .reply_recording_id = REPLY_TO(id),
	    .routed = true,
	    .route = ROUTE,
	    .class = "web",
	    .recording_url = "https://3.basecamp.com/999/buckets/10/x",
	    .requester_id = OPERATOR};
	if (strcmp(state, "admitted") == 0)
		m.verdict.snapshot = (struct blob){SNAPSHOT, strlen(SNAPSHOT)};
	return m;
}

const char *
admit_event(struct fixture *f, int64_t id, const char *key)
{
	struct msg m = verdict_of(f, id, "admitted");

	m.verdict.conversation_key = key;
	return fixture_get(f, &m, ROLE_INTAKE, "", MSG_VERDICT_IS)
	    ->verdict_is.state;
}

const char *
refuse_event(
    struct fixture *f, int64_t id, const char *state, const char *reason)
{
	struct msg m = verdict_of(f, id, state);

	m.verdict.reason = reason;
	return fixture_get(f, &m, ROLE_INTAKE, "", MSG_VERDICT_IS)
	    ->verdict_is.state;
}

struct msg
launch_of(int64_t id, const char *attempt)
{
	struct msg m = {.type = MSG_LAUNCH};

	m.launch = (struct msg_launch){.attempt = attempt,
	    .event_id = id,
	    .generation = 1,
	    .driver = "claude",
	    .containment = "",
	    .deadline_ms = 2700000};
	return m;
}

const char *
token_read(int *fd)
{
	static char tokens[8][64];
	static unsigned int turn;
	char *out = tokens[turn++ % 8];
	ssize_t n = read(*fd, out, sizeof(tokens[0]));

	assert_int_equal(TOKEN_LEN + 1, n);
	assert_int_equal('\n', out[TOKEN_LEN]);
	out[TOKEN_LEN] = '\0';
	assert_int_equal(0, read(*fd, out + TOKEN_LEN + 1, 1)); /* its end */
	(void)close(*fd);
	*fd = -1;
	return out;
}

const char *
launch(struct fixture *f, int64_t id, const char *attempt)
{
	struct msg m = launch_of(id, attempt), *reply;

	reply = fixture_ask(f, &m, ROLE_DISPATCHER, "");
	return reply->type == MSG_LAUNCHED ? token_read(&reply->launched.token)
					   : "";
}

const char *
launch_new(struct fixture *f, int64_t id, const char *attempt)
{
	(void)record_event(f, id);
	(void)admit_event(f, id, "k");
	return launch(f, id, attempt);
}

void
admit_new(struct fixture *f, int64_t id, const char *key)
{
	(void)record_event(f, id);
	assert_string_equal("admitted", admit_event(f, id, key));
}

void
launch_fails(
    struct fixture *f, int64_t id, const char *attempt, const char *reason)
{
	struct msg m = launch_of(id, attempt);
	int64_t before = sql_int(f, "SELECT COUNT(*) FROM tasks");

	assert_failed(fixture_ask(f, &m, ROLE_DISPATCHER, ""), reason);
	assert_int_equal(before, sql_int(f, "SELECT COUNT(*) FROM tasks"));
}

void
run_attempt(struct fixture *f, const char *attempt, int64_t pid)
{
	struct msg m = {.type = MSG_RUNNING};

	m.running = (struct msg_running){.attempt = attempt,
	    .pid = pid,
	    .pgid = pid,
	    .started_ticks = 4711,
	    .session_id = "s"};
	(void)fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_DONE);
}

struct msg *
get_dispatch(
    struct fixture *f, const char *token, int64_t id, const char *attempt)
{
	struct msg m = {.type = MSG_GET_DISPATCH};

	m.get_dispatch.token = token;
	m.get_dispatch.event_id = id;
	return fixture_ask(f, &m, ROLE_MCPD, attempt);
}

struct msg *
ack_dispatch(struct fixture *f, const char *token, int64_t id, int64_t ack_id,
    const char *attempt)
{
	struct msg m = {.type = MSG_ACK_DISPATCH};

	m.ack_dispatch.token = token;
	m.ack_dispatch.event_id = id;
	m.ack_dispatch.ack_id = (struct opt){ack_id != 0, ack_id};
	return fixture_ask(f, &m, ROLE_MCPD, attempt);
}

struct msg *
complete_dispatch(struct fixture *f, const char *token, int64_t id,
    const char *outcome, const char *attempt)
{
	struct msg m = {.type = MSG_COMPLETE_DISPATCH};

	m.complete_dispatch.token = token;
	m.complete_dispatch.event_id = id;
	m.complete_dispatch.outcome = outcome;
	return fixture_ask(f, &m, ROLE_MCPD, attempt);
}

struct msg
end_of(const char *attempt, const char *stop_reason)
{
	struct msg m = {.type = MSG_END};

	m.end.attempt = attempt;
	m.end.stop_reason = stop_reason;
	return m;
}

struct msg *
end_attempt(struct fixture *f, const char *attempt, const char *stop_reason)
{
	struct msg m = end_of(attempt, stop_reason);

	return fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_ENDED);
}

struct msg *
spawn_failed(struct fixture *f, const char *attempt)
{
	struct msg m = end_of(attempt, "failed");

	m.end.spawn_failed = true;
	return fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_ENDED);
}

static const char *
fresh_nonce(void)
{
	static char nonces[8][33];
	static unsigned int turn;
	char *out = nonces[turn % 8];

	(void)snprintf(out, sizeof(nonces[0]), "%032x", 0x1000 + turn++);
	return out;
}

struct msg *
redispatch_event(struct fixture *f, int64_t id)
{
	struct msg m = {.type = MSG_REDISPATCH};

	m.redispatch = (struct msg_redispatch){fresh_nonce(), "local:ann", id};
	return fixture_ask(f, &m, ROLE_SUPERVISOR, "");
}

struct msg *
discard_event(struct fixture *f, int64_t id)
{
	struct msg m = {.type = MSG_DISCARD};

	m.discard = (struct msg_discard){fresh_nonce(), "local:ann", id};
	return fixture_ask(f, &m, ROLE_SUPERVISOR, "");
}

struct msg *
set_hold(struct fixture *f)
{
	struct msg m = {.type = MSG_HOLD};

	m.hold = (struct msg_hold){fresh_nonce(), "local:ann", "hold"};
	return fixture_ask(f, &m, ROLE_SUPERVISOR, "");
}

struct msg *
release_hold(struct fixture *f)
{
	struct msg m = {.type = MSG_RELEASE};

	m.release = (struct msg_release){fresh_nonce(), "local:bob"};
	return fixture_ask(f, &m, ROLE_SUPERVISOR, "");
}

struct msg *
claim(struct fixture *f, const char *nonce)
{
	struct msg m = {.type = MSG_CLAIM};

	m.claim.nonce = nonce;
	return fixture_get(f, &m, ROLE_OUTBOX, "", MSG_CLAIMED);
}

void
join_event(struct fixture *f, int64_t id)
{
	(void)record_event(f, id);
	(void)admit_event(f, id, "k");
	sql_ok(f,
	    "INSERT INTO task_events (task_id, event_id, conversation_key,"
	    " guard) VALUES (1, %lld, 'k', 'armed');"
	    "UPDATE events SET state = 'dispatched' WHERE id = %lld",
	    (long long)id, (long long)id);
}

int64_t
next_startable(struct fixture *f)
{
	struct msg m = {.type = MSG_NEXT_STARTABLE};

	m.next_startable.generation = 1;
	return fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_STARTABLE)
	    ->startable.event_id;
}

const char *
intent_state(struct fixture *f, int64_t id)
{
	return sql_get(
	    f, "SELECT state FROM outbox WHERE id = %lld", (long long)id);
}
