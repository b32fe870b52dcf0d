#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buffer.h"
#include "tests/unit/repeats.h"

#define HASH "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define IMPORT_OF_TWO                               \
	"{\"version\":1,\"entries\":["              \
	"{\"event_id\":101,\"decision\":\"done\"}," \
	"{\"event_id\":102,\"decision\":\"done\"}]}"
#define STAMP "2026-01-05T09:10:00.000000000Z"
#define LATER "2026-01-05T09:20:00.000000000Z"

static char token[TOKEN_LEN + 1];
static struct msg verdict, adopt;
static char words[65];

/* ---- where the story stands before the request ------------------------- */

static void
nothing(struct fixture *f)
{
}

static void
position(struct fixture *f)
{
	struct msg m = {.type = MSG_CHECKPOINT};

	m.checkpoint = (struct msg_checkpoint){"key", "lineage", "p", 0};
	(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_DONE);
}

static void
lost(struct fixture *f)
{
	struct msg m = {.type = MSG_LOSS};

	m.loss = (struct msg_loss){NONCE_1, "", {"[101,102]", 9}, 600000};
	(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_LOSS_IS);
}

static void
seen(struct fixture *f)
{
	(void)record_event(f, 101);
	verdict = verdict_of(f, 101, "admitted");
}

static void
admitted(struct fixture *f)
{
	(void)record_event(f, 101);
	(void)admit_event(f, 101, "k");
}

static void
deadly(struct fixture *f)
{
	struct msg m = {.type = MSG_COUNT_DEATH};

	admitted(f);
	m.count_death = (struct msg_count_death){101, NONCE_1};
	(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_DEATH_COUNTED);
}

static void
launched(struct fixture *f)
{
	admitted(f);
	(void)snprintf(token, sizeof(token), "%s", launch(f, 101, ATT_1));
}

static void
running(struct fixture *f)
{
	launched(f);
	run_attempt(f, ATT_1, 4711);
}

static void
followed(struct fixture *f)
{
	launched(f);
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "k");
}

static void
joined(struct fixture *f)
{
	struct msg m = {.type = MSG_JOIN};

	followed(f);
	m.join = (struct msg_join){ATT_1, 1};
	(void)fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_JOINED);
}

static void
failed_start(struct fixture *f)
{
	launched(f);
	(void)spawn_failed(f, ATT_1);
	(void)launch(f, 101, ATT_2);
}

static void
pulled(struct fixture *f)
{
	launched(f);
	(void)get_dispatch(f, token, 0, ATT_1);
}

static void
unreported(struct fixture *f)
{
	struct msg m = {.type = MSG_END};

	pulled(f);
	(void)ack_dispatch(f, token, 101, 7, ATT_1);
	m.end = (struct msg_end){.attempt = ATT_1, .stop_reason = "lost"};
	(void)fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_ENDED);
}

/* What a listing of its place is to leave out, it was told. */
static void
adoptable(struct fixture *f)
{
	struct msg m = {.type = MSG_ADOPTABLE_NEXT};
	const struct msg_adoptable *told;

	unreported(f);
	m.adoptable_next = (struct msg_adoptable_next){ATT_1, 0};
	told =
	    &fixture_get(f, &m, ROLE_DISPATCHER, "", MSG_ADOPTABLE)->adoptable;
	(void)snprintf(words, sizeof(words), "%s", told->words);
	adopt.type = MSG_ADOPT;
	adopt.adopt = (struct msg_adopt){ATT_1, 101, 77, told->as_of, words};
}

static void
unknown(struct fixture *f)
{
	launched(f);
	(void)end_attempt(f, ATT_1, "lost");
}

/* Reported, its task still live; the notice of an earlier one is posted. */
static void
reported(struct fixture *f)
{
	struct msg m = {.type = MSG_RECEIPT};

	unknown(f);
	m.receipt = (struct msg_receipt){2, NONCE_2, 7};
	(void)claim(f, NONCE_2);
	(void)fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SETTLED);
	(void)redispatch_event(f, 101);
	(void)snprintf(token, sizeof(token), "%s", launch(f, 101, ATT_2));
	(void)get_dispatch(f, token, 0, ATT_2);
	(void)complete_dispatch(f, token, 101, "failed", ATT_2);
}

static void
no_route(struct fixture *f)
{
	(void)record_event(f, 101);
	(void)refuse_event(f, 101, "blocked", "no_route");
}

static void
held(struct fixture *f)
{
	admitted(f);
	(void)set_hold(f);
}

static void
guard_due(struct fixture *f)
{
	admitted(f);
	fixture_wait(30000);
}

static void
guard_claimed(struct fixture *f)
{
	guard_due(f);
	(void)claim(f, NONCE_1);
}

static void
guard_doubted(struct fixture *f)
{
	struct msg m = {.type = MSG_IN_DOUBT};

	guard_claimed(f);
	m.in_doubt = (struct msg_in_doubt){1, NONCE_1, 10, "listing failed"};
	(void)fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SETTLED);
}

/* ---- the requests ------------------------------------------------------ */

static const int64_t candidates[] = {77};

const struct repeat repeats[] = {
    {nothing, ROLE_INTAKE,
	{.type = MSG_RECORD,
	    .record = {.event_id = 101,
		.lane = "poll",
		.event_type = "x",
		.kind = "x",
		.action = "x",
		.bucket_id = 1,
		.creator_id = 1,
		.recording_id = 1,
		.created_at = STAMP}},
	NULL},
    {nothing, ROLE_INTAKE,
	{.type = MSG_CHECKPOINT, .checkpoint = {"key", "lineage", "p", 7}},
	NULL},
    {position, ROLE_INTAKE,
	{.type = MSG_DROP_POSITION, .drop_position = {"key", "p"}}, NULL},
    {nothing, ROLE_INTAKE,
	{.type = MSG_GAP, .gap = {NONCE_1, "epoch", {true, 5}, "replay", ""}},
	NULL},
    {nothing, ROLE_INTAKE,
	{.type = MSG_LOSS, .loss = {NONCE_1, "{}", {"[101,102]", 9}, 600000}},
	NULL},
    {lost, ROLE_INTAKE, {.type = MSG_LOSS_CURSOR, .loss_cursor = {1, "p2"}},
	NULL},
    {lost, ROLE_INTAKE, {.type = MSG_LOSS_ENTRY, .loss_entry = {1, 101}}, NULL},
    {lost, ROLE_INTAKE,
	{.type = MSG_LOSS_DEADLINE, .loss_deadline = {1, LATER}}, NULL},
    {lost, ROLE_INTAKE, {.type = MSG_LOSS_CLOSE, .loss_close = {1}}, NULL},
    {seen, ROLE_INTAKE,
	{.type = MSG_COUNT_DEATH, .count_death = {101, NONCE_1}}, NULL},
    {deadly, ROLE_DISPATCHER,
	{.type = MSG_COUNT_DEATH, .count_death = {101, NONCE_2}}, NULL},
    {nothing, ROLE_SUPERVISOR,
	{.type = MSG_CONNECTION, .connection = {"running", 7, ""}}, NULL},
    {unknown, ROLE_SUPERVISOR,
	{.type = MSG_REDISPATCH, .redispatch = {NONCE_1, "local:ann", 101}},
	NULL},
    {reported, ROLE_SUPERVISOR,
	{.type = MSG_REDISPATCH, .redispatch = {NONCE_1, "local:ann", 101}},
	NULL},
    {no_route, ROLE_SUPERVISOR,
	{.type = MSG_REDISPATCH, .redispatch = {NONCE_1, "local:ann", 101}},
	NULL},
    {held, ROLE_SUPERVISOR,
	{.type = MSG_REDISPATCH, .redispatch = {NONCE_1, "local:ann", 101}},
	NULL},
    {no_route, ROLE_SUPERVISOR,
	{.type = MSG_DISCARD, .discard = {NONCE_1, "local:ann", 101}}, NULL},
    {admitted, ROLE_SUPERVISOR,
	{.type = MSG_HOLD, .hold = {NONCE_1, "local:ann", "hold"}}, NULL},
    {held, ROLE_SUPERVISOR,
	{.type = MSG_HOLD, .hold = {NONCE_1, "local:ann", "shadow_promote"}},
	NULL},
    {held, ROLE_SUPERVISOR,
	{.type = MSG_RELEASE, .release = {NONCE_1, "local:ann"}}, NULL},
    {seen, ROLE_INTAKE, {.type = MSG_VERDICT}, NULL},
    {admitted, ROLE_DISPATCHER,
	{.type = MSG_LAUNCH, .launch = {ATT_1, 101, 1, "claude", "", 1000}},
	"token_sha256 rekeys"},
    {launched, ROLE_DISPATCHER, {.type = MSG_REKEY, .rekey = {ATT_1}},
	"token_sha256 rekeys"},
    {running, ROLE_SUPERVISOR, {.type = MSG_TAKE_OVER, .take_over = {ATT_1}},
	"token_sha256 rekeys"},
    {followed, ROLE_DISPATCHER, {.type = MSG_JOIN, .join = {ATT_1, 1}}, NULL},
    {joined, ROLE_DISPATCHER, {.type = MSG_EXPOSE, .expose = {ATT_1, 102}},
	NULL},
    {launched, ROLE_DISPATCHER,
	{.type = MSG_RUNNING, .running = {ATT_1, 42, 42, 7, "s"}}, NULL},
    {launched, ROLE_DISPATCHER, {.type = MSG_PROGRESS, .progress = {ATT_1}},
	"progress_at"},
    {launched, ROLE_DISPATCHER, {.type = MSG_REFUSAL, .refusal = {ATT_1, 1}},
	NULL},
    {launched, ROLE_DISPATCHER,
	{.type = MSG_STILL_RUNNING, .still_running = {ATT_1, 1}},
	"body"}, /* says the minute */
    {launched, ROLE_DISPATCHER,
	{.type = MSG_END,
	    .end = {.attempt = ATT_1, .stop_reason = "lost", .refusals = 2}},
	NULL},
    {pulled, ROLE_DISPATCHER,
	{.type = MSG_END, .end = {.attempt = ATT_1, .stop_reason = "finished"}},
	NULL},
    {launched, ROLE_DISPATCHER,
	{.type = MSG_END,
	    .end = {.attempt = ATT_1,
		.stop_reason = "failed",
		.spawn_failed = true}},
	NULL},
    {failed_start, ROLE_DISPATCHER,
	{.type = MSG_END,
	    .end = {.attempt = ATT_2,
		.stop_reason = "failed",
		.spawn_failed = true}},
	NULL},
    {adoptable, ROLE_DISPATCHER, {.type = MSG_ADOPT}, NULL},
    {launched, ROLE_SUPERVISOR,
	{.type = MSG_SETTLE, .settle = {NONCE_2, "local:a", ATT_1}}, NULL},
    {guard_due, ROLE_OUTBOX, {.type = MSG_CLAIM, .claim = {NONCE_1, 0}}, NULL},
    {guard_claimed, ROLE_OUTBOX,
	{.type = MSG_RECEIPT, .receipt = {1, NONCE_1, 77}}, NULL},
    {guard_claimed, ROLE_OUTBOX,
	{.type = MSG_REFUSED, .refused = {1, NONCE_1, "403"}}, NULL},
    {guard_claimed, ROLE_OUTBOX,
	{.type = MSG_DEFER, .defer = {1, NONCE_1, 1, 1000}}, "reconcile_at"},
    {guard_claimed, ROLE_OUTBOX,
	{.type = MSG_IN_DOUBT, .in_doubt = {1, NONCE_1, 10, "listing failed"}},
	NULL},
    {guard_claimed, ROLE_OUTBOX,
	{.type = MSG_LISTED, .listed = {1, NONCE_1, {candidates, 1}}}, NULL},
    {guard_doubted, ROLE_SUPERVISOR,
	{.type = MSG_RESOLVE, .resolve = {NONCE_2, "local:a", 1, "sent", 77}},
	NULL},
    {guard_doubted, ROLE_SUPERVISOR,
	{.type = MSG_RESOLVE, .resolve = {NONCE_2, "local:a", 1, "abandon", 0}},
	NULL},
    {guard_doubted, ROLE_SUPERVISOR,
	{.type = MSG_RESOLVE, .resolve = {NONCE_2, "local:a", 1, "resend", 0}},
	NULL},
    {admitted, ROLE_SUPERVISOR,
	{.type = MSG_IMPORT,
	    .import = {NONCE_2, "local:a",
		{IMPORT_OF_TWO, sizeof(IMPORT_OF_TWO) - 1}}},
	NULL},
    {nothing, ROLE_OUTBOX,
	{.type = MSG_RENEWAL_HOLD,
	    .renewal_hold = {NONCE_1, "throttled", STAMP}},
	NULL},
    {launched, ROLE_MCPD,
	{.type = MSG_GET_DISPATCH, .get_dispatch = {token, 0}}, NULL},
    {pulled, ROLE_MCPD,
	{.type = MSG_ACK_DISPATCH, .ack_dispatch = {token, 101, {true, 7}}},
	NULL},
    {pulled, ROLE_MCPD,
	{.type = MSG_COMPLETE_DISPATCH,
	    .complete_dispatch = {token, 101, "failed", {NULL, 0}, {true, 9}}},
	NULL},
    {pulled, ROLE_MCPD,
	{.type = MSG_POST,
	    .post = {token, 101, "worker_reply", HASH, {"<p>x</p>", 8},
		{"x", 1}}},
	NULL},
};

const size_t repeat_count = sizeof(repeats) / sizeof(repeats[0]);

struct msg
repeat_request(const struct repeat *r)
{
	return r->m.type == MSG_VERDICT ? verdict
	    : r->m.type == MSG_ADOPT    ? adopt
					: r->m;
}

const char *
repeat_attempt(const struct repeat *r)
{
	return r->from == ROLE_MCPD ? ATT_1 : "";
}

/* ---- the ledger as text ------------------------------------------------ */

static void
dump_rows(
    sqlite3 *db, struct buffer *b, const char *table, const char *rewritten)
{
	char text[128];
	sqlite3_stmt *stmt;
	int i;

	(void)snprintf(text, sizeof(text), "SELECT * FROM %s", table);
	assert_int_equal(
	    SQLITE_OK, sqlite3_prepare_v2(db, text, -1, &stmt, NULL));
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		for (i = 0; i < sqlite3_column_count(stmt); i++) {
			const char *name = sqlite3_column_name(stmt, i);

			if (rewritten != NULL && strstr(rewritten, name))
				continue;
			buffer_printf(
			    b, "%s.%s=%s\n", table, name, row_text(stmt, i));
		}
	}
	(void)sqlite3_finalize(stmt);
}

char *
repeat_dump(sqlite3 *db, const char *rewritten)
{
	static const char *const tables[] = {"events", "checkpoints", "losses",
	    "loss_ids", "gaps", "tasks", "task_events", "attempts", "outbox",
	    "renewal_holds", "generations", "hold_marker", "decisions",
	    "connection"};
	struct buffer b = {0};
	size_t i;

	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		dump_rows(db, &b, tables[i], rewritten);
	return buffer_take(&b, NULL);
}

static void
assert_same_decision(const struct msg_decided *a, const struct msg_decided *b)
{
	assert_int_equal(a->decision_id, b->decision_id);
	assert_string_equal(a->from_state, b->from_state);
	assert_string_equal(a->from_reason, b->from_reason);
	assert_string_equal(a->from_outcome, b->from_outcome);
	assert_string_equal(a->state, b->state);
	assert_int_equal(a->already, b->already);
	assert_int_equal(a->pending, b->pending);
	assert_int_equal(a->rerun, b->rerun);
	assert_int_equal(a->held, b->held);
	assert_int_equal(a->superseded_task_id, b->superseded_task_id);
	assert_string_equal(a->attempt, b->attempt);
	assert_int_equal(a->canceled, b->canceled);
}

static void
assert_same_hold(const struct msg_hold_is *a, const struct msg_hold_is *b)
{
	assert_int_equal(a->stands, b->stands);
	assert_int_equal(a->changed, b->changed);
	assert_int_equal(a->generation, b->generation);
	assert_string_equal(a->cause, b->cause);
	assert_string_equal(a->held_by, b->held_by);
	assert_string_equal(a->held_at, b->held_at);
	assert_int_equal(a->tagged, b->tagged);
	assert_int_equal(a->held, b->held);
}

void
assert_same_answer(const struct msg *a, const struct msg *b)
{
	if (b->type == MSG_FAILED)
		fail_msg("%s: %s", b->failed.reason, b->failed.text);
	assert_int_equal(a->type, b->type);
	switch (b->type) {
	case MSG_RECORDED:
		assert_false(b->recorded.is_new);
		break;
	case MSG_VERDICT_IS:
		assert_false(b->verdict_is.applied); /* is success */
		assert_string_equal(a->verdict_is.state, b->verdict_is.state);
		break;
	case MSG_LOSS_IS:
		assert_int_equal(a->loss_is.loss_id, b->loss_is.loss_id);
		assert_int_equal(a->loss_is.missing, b->loss_is.missing);
		assert_int_equal(
		    a->loss_is.repair_since, b->loss_is.repair_since);
		assert_int_equal(a->loss_is.resolved, b->loss_is.resolved);
		break;
	case MSG_DEATH_COUNTED:
		assert_int_equal(
		    a->death_counted.count, b->death_counted.count);
		assert_int_equal(
		    a->death_counted.quarantined, b->death_counted.quarantined);
		break;
	case MSG_JOINED:
		assert_int_equal(1, a->joined.joined);
		assert_int_equal(0, b->joined.joined); /* are on it already */
		assert_int_equal(a->joined.unexposed, b->joined.unexposed);
		break;
	case MSG_EXPOSED:
		assert_true(a->exposed.by_you && b->exposed.by_you);
		assert_false(a->exposed.pulled || b->exposed.pulled);
		assert_string_equal(a->exposed.delivery, b->exposed.delivery);
		break;
	case MSG_ENDED:
		assert_string_equal(a->ended.stop_reason, b->ended.stop_reason);
		assert_int_equal(a->ended.unknown, b->ended.unknown);
		assert_int_equal(a->ended.withdrawn, b->ended.withdrawn);
		break;
	case MSG_ATTEMPT_SETTLED:
		assert_int_equal(
		    a->attempt_settled.unknown, b->attempt_settled.unknown);
		break;
	case MSG_CLAIMED:
		assert_true(b->claimed.found);
		assert_int_equal(a->claimed.intent_id, b->claimed.intent_id);
		break;
	case MSG_SETTLED:
		assert_string_equal(a->settled.state, b->settled.state);
		break;
	case MSG_RESOLVED:
		assert_string_equal(a->resolved.state, b->resolved.state);
		assert_false(b->resolved.changed);
		break;
	case MSG_IMPORTED:
		assert_memory_equal(
		    &a->imported, &b->imported, sizeof(a->imported));
		break;
	case MSG_INSTRUCTION:
		assert_int_equal(
		    a->instruction.event_id, b->instruction.event_id);
		break;
	case MSG_REPORT_IS:
		assert_string_equal(
		    a->report_is.delivery, b->report_is.delivery);
		break;
	case MSG_POST_IS:
		assert_int_equal(a->post_is.intent_id, b->post_is.intent_id);
		break;
	case MSG_DECIDED:
		assert_same_decision(&a->decided, &b->decided);
		break;
	case MSG_HOLD_IS:
		assert_same_hold(&a->hold_is, &b->hold_is);
		break;
	case MSG_LAUNCHED:
		assert_int_equal(a->launched.task_id, b->launched.task_id);
		break;
	default:
		break;
	}
}
