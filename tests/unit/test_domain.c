/*
 * The worker's domain from its JSON to the ledger and back: a real mcpd asks
 * a real ledger, and what is compared is what the model reads (ledger.md 6).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base64.h"
#include "common/buffer.h"
#include "common/digest.h"
#include "common/xmalloc.h"
#include "ledger/record.h"
#include "ledger/task.h"
#include "tests/unit/ledger_fixture.h"
#include "tests/unit/mcp_world.h"
#include "tests/unit/trap.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define CONNECT "basecamp_connect"
#define BIG INT64_C(9007199254740993) /* 2^53 + 1 */

/* Where each call finds both of them. */
static struct fixture *f;
static struct world *w;
static const char *attempt; /* of w's link */
static void (*after_commit)(void);

/* ---- a call -------------------------------------------------------------- */

/* Between the ledger's COMMIT and the answer that mcpd builds of it. */
static void
forward(struct world *world, const struct reply_to *to, const struct msg *m)
{
	struct msg copy = *m, *reply;

	reply = fixture_ask(f, &copy, ROLE_MCPD, attempt);
	if (after_commit != NULL)
		after_commit();
	peer_reply(to, reply);
}

static int
setup(void **state)
{
	void *own;

	(void)fixture_setup(&own);
	f = own;
	attempt = ATT_1;
	after_commit = NULL;
	w = world_open();
	w->answer = forward;
	return 0;
}

static int
teardown(void **state)
{
	void *own = f;

	w->answer = NULL;
	world_free(w);
	return fixture_teardown(&own);
}

/* The text that the model gets; it must be an error, or none. */
static const char *call(bool wants_error, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static const char *
call(bool wants_error, const char *fmt, ...)
{
	char *arguments;
	const char *text;
	bool is_error;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&arguments, fmt, ap) == -1)
		abort();
	va_end(ap);
	text = world_call(w, CONNECT, arguments, &is_error);
	assert_non_null(text);
	if (is_error != wants_error)
		fail_msg("%s: %s", arguments, text);
	free(arguments);
	return text;
}

/* An action with its params, event 101 among them. */
#define ACT(action, more) \
	"{\"action\":\"" action "\",\"params\":{\"event_id\":101" more "}}"
#define GET ACT("get_dispatch", "")
#define ACK(more) ACT("ack_dispatch", more)
#define COMPLETE(outcome, more) \
	ACT("complete_dispatch", ",\"outcome\":\"" outcome "\"" more)

static void
assert_answer(const char *arguments, const char *want)
{
	assert_string_equal(want, call(false, "%s", arguments));
}

static void
assert_refused(const char *arguments, const char *kind, const char *text)
{
	char want[512];

	(void)snprintf(want, sizeof(want),
	    "{\n  \"error\": \"%s\",\n  \"message\": \"%s\"\n}", kind, text);
	assert_string_equal(want, call(true, "%s", arguments));
}

#define NOT_EXPOSED \
	"event 101 was not handed to this worker; call get_dispatch first"
#define NOT_CURRENT "This task is not current any more. Stop working on it."
#define GENERIC                                                       \
	"The connector could not answer. Try again; report it if it " \
	"persists."

/* ---- the story so far ---------------------------------------------------- */

static void
use_token(const char *token)
{
	assert_int_equal(TOKEN_LEN, strlen(token));
	memcpy(w->server.token, token, TOKEN_LEN + 1);
}

static void
launched(void)
{
	use_token(launch_new(f, 101, ATT_1));
}

static void
pulled(void)
{
	launched();
	(void)call(false, GET);
}

/* Every value of every row, so that nothing may have been written. */
static char *
everything(void)
{
	struct buffer out = {0};
	sqlite3_stmt *tables, *rows;
	char sql_text[128];
	size_t len;
	int i;

	assert_int_equal(SQLITE_OK,
	    sqlite3_prepare_v2(f->l.db,
		"SELECT name FROM sqlite_schema WHERE type = 'table'"
		" ORDER BY name",
		-1, &tables, NULL));
	while (sqlite3_step(tables) == SQLITE_ROW) {
		(void)snprintf(sql_text, sizeof(sql_text), "SELECT * FROM %s",
		    row_text(tables, 0));
		assert_int_equal(SQLITE_OK,
		    sqlite3_prepare_v2(f->l.db, sql_text, -1, &rows, NULL));
		while (sqlite3_step(rows) == SQLITE_ROW) {
			for (i = 0; i < sqlite3_column_count(rows); i++)
				buffer_printf(&out, "%d:%s|",
				    sqlite3_column_type(rows, i),
				    row_text(rows, i));
			buffer_add_char(&out, '\n');
		}
		(void)sqlite3_finalize(rows);
	}
	(void)sqlite3_finalize(tables);
	return buffer_take(&out, &len);
}

/* These calls, answered as they may be, write nothing. */
static void
assert_writes_nothing(const char *const *calls, size_t count, bool wants_error)
{
	char *before = everything(), *after;
	int changes = sqlite3_total_changes(f->l.db);
	size_t i;

	fixture_wait(1000);
	for (i = 0; i < count; i++)
		(void)call(wants_error, "%s", calls[i]);
	after = everything();
	assert_string_equal(before, after);
	assert_int_equal(changes, sqlite3_total_changes(f->l.db));
	free(before);
	free(after);
}

/* ---- parameters ---------------------------------------------------------- */

/* Any id of any action; the text names it, and the ledger is not asked. */
static const struct {
	const char *value;
	bool is_good;
} ids[] = {
    {"101", true},
    {"\"101\"", true},
    {"101.0", true},
    {"1.01e2", true},
    {"9007199254740991", true},
    {"\"9007199254740993\"", true},
    {"\"9223372036854775807\"", true},
    {"9007199254740992", false},
    {"9007199254740993", false},
    {"-9007199254740993", false},
    {"1e300", false},
    {"1.5", false},
    {"0", false},
    {"-1", false},
    {"\"0\"", false},
    {"\"-1\"", false},
    {"\"+1\"", false},
    {"\" 1\"", false},
    {"\"1.0\"", false},
    {"\"1e3\"", false},
    {"\"NaN\"", false},
    {"\"\"", false},
    {"\"9223372036854775808\"", false},
    {"true", false},
    {"[1]", false},
    {"{}", false},
};
static const struct {
	const char *before, *after, *name;
} id_places[] = {
    {"{\"action\":\"get_dispatch\",\"params\":{\"event_id\":", "}}",
	"event_id"},
    {"{\"action\":\"ack_dispatch\",\"params\":{\"event_id\":", "}}",
	"event_id"},
    {"{\"action\":\"ack_dispatch\",\"params\":{\"event_id\":101,\"ack_id\":",
	"}}", "ack_id"},
    {"{\"action\":\"complete_dispatch\",\"params\":{\"outcome\":\"failed\","
     "\"event_id\":",
	"}}", "event_id"},
    {"{\"action\":\"complete_dispatch\",\"params\":{\"event_id\":101,"
     "\"outcome\":\"failed\",\"reply_id\":",
	"}}", "reply_id"},
};

static void
ids_are_whole_and_never_rounded(void **state)
{
	const char *text;
	size_t i, j;
	bool is_refused;
	char *arguments;
	bool is_error;

	launched();
	for (i = 0; i < COUNT(ids); i++) {
		for (j = 0; j < COUNT(id_places); j++) {
			(void)xasprintf(&arguments, "%s%s%s",
			    id_places[j].before, ids[i].value,
			    id_places[j].after);
			text = world_call(w, CONNECT, arguments, &is_error);
			is_refused = strstr(text, "invalid_params") != NULL &&
			    strstr(text, id_places[j].name) != NULL;
			if (is_refused == ids[i].is_good)
				fail_msg("%s: %s", arguments, text);
			free(arguments);
		}
	}
}

/* 2^53 + 1 is an id like any other, where it is written as a string. */
static void
an_id_beyond_doubles_is_a_string(void **state)
{
	(void)record_event(f, BIG - 1);
	use_token(launch_new(f, BIG, ATT_1));
	assert_non_null(
	    strstr(call(true,
		       "{\"action\":\"get_dispatch\",\"params\":{\"event_id\":"
		       "9007199254740993}}"),
		"event_id"));
	assert_non_null(
	    strstr(call(false,
		       "{\"action\":\"get_dispatch\",\"params\":{\"event_id\":"
		       "\"9007199254740993\"}}"),
		"\"event_id\": 9007199254740993,"));
	(void)call(true,
	    "{\"action\":\"get_dispatch\",\"params\":{\"event_id\":null}}");
	assert_string_equal(
	    "9007199254740993", sql_get(f, "SELECT event_id FROM task_events"));
}

/* ---- get ----------------------------------------------------------------- */

#define PROJECT_URL "https://3.basecamp.com/999/buckets/10/x"
#define WHOLE(guard, delivery, content)                                      \
	"{\n  \"instruction\": {\n    \"event_id\": 101,\n    "              \
	"\"event_type\": \"comment.created\",\n    \"trigger\": "            \
	"\"mentioned\",\n    \"class\": \"web\",\n    \"recording\": {\n   " \
	"   \"bucket_id\": 10,\n      \"recording_id\": 1101,\n      "       \
	"\"type\": \"Comment\",\n      \"title\": \"Re: Kickoff\",\n      "  \
	"\"url\": \"" PROJECT_URL "\"\n    },\n    \"reply_to\": {\n      "  \
	"\"kind\": \"comment\",\n      \"recording_id\": 5101\n    },\n    " \
	"\"requester_id\": 26909558,\n    \"acknowledge\": true,\n    "      \
	"\"guard_acknowledged\": " guard ",\n    \"delivery\": \"" delivery  \
	"\",\n    \"content\": \"" content "\",\n    "                       \
	"\"content_updated_at\": \"2026-01-05T08:59:00Z\"\n  }\n}"

/* A mention as Basecamp writes it, in JSON's spelling. */
static char *
mention_of(long long person)
{
	char *json, *mention, sgid[200];

	(void)xasprintf(&json,
	    "{\"gid\":\"gid://bc3/Person/%lld\",\"purpose\":\"attachable\"}",
	    person);
	assert_true(strlen(json) < 100);
	base64url_encode(json, strlen(json), sgid);
	(void)xasprintf(
	    &mention, "<bc-attachment sgid='%s--x'></bc-attachment>", sgid);
	free(json);
	return mention;
}

/* An event whose record has something in every column, told or not. */
static void
launched_with_everything(void)
{
	char *own = mention_of(AGENT), *snapshot;
	struct msg m;

	(void)record_event(f, 101);
	sql_ok(f, "UPDATE events SET details = 'needle-details'");
	(void)xasprintf(&snapshot,
	    "{\"type\":\"Comment\",\"title\":\"Re: Kickoff\",\"app_url\":"
	    "\"https://needle.test\",\"content\":\"<p>%s fix it</p>\","
	    "\"updated_at\":\"2026-01-05T08:59:00Z\",\"project_name\":"
	    "\"needle-project\",\"requester_name\":\"needle-name\",\"role\":"
	    "\"operator\",\"owner\":true}",
	    own);
	m = verdict_of(f, 101, "admitted");
	m.verdict.snapshot = (struct blob){snapshot, strlen(snapshot)};
	(void)fixture_get(f, &m, ROLE_INTAKE, "", MSG_VERDICT_IS);
	use_token(launch(f, 101, ATT_1));
	free(snapshot);
	free(own);
}

static void
an_instruction_is_exactly_this(void **state)
{
	char hash[DIGEST_HEX_SIZE];
	const char *text;

	launched_with_everything();
	digest_sha256_hex(w->server.token, TOKEN_LEN, hash);
	assert_string_equal(hash, sql_get(f, "SELECT token_sha256 FROM tasks"));
	text = call(false, GET);
	assert_string_equal(WHOLE("false", "exposed", "<p>  fix it</p>"), text);
	assert_null(strstr(text, w->server.token));
	assert_null(strstr(text, hash));
	assert_null(strstr(text, ROUTE));
	assert_null(strstr(text, "needle"));
	assert_null(strstr(text, ATT_1));
	/* What the row says now, and not what the launch had said. */
	(void)call(false, ACK(",\"ack_id\":7"));
	assert_answer(GET, WHOLE("false", "delivered", "<p>  fix it</p>"));
	sql_ok(f, "UPDATE events SET class = '', reply_kind = ''");
	text = call(false, GET);
	assert_null(strstr(text, "class"));
	assert_non_null(strstr(text, "\"reply_to\": null,"));
}

static void
nothing_waiting_is_said_so(void **state)
{
	pulled();
	(void)call(false, ACK(""));
	assert_answer("{\"action\":\"get_dispatch\"}",
	    "{\n  \"instruction\": null,\n  \"message\": \"Nothing is waiting "
	    "for you.\"\n}");
}

/* A launch is no pull: nothing may be reported or served on its strength. */
static void
a_launch_exposure_is_no_pull(void **state)
{
	static const char *const reports[] = {
	    ACK(""), ACK(",\"ack_id\":7"), COMPLETE("succeeded", "")};
	size_t i;

	launched();
	assert_writes_nothing(reports, COUNT(reports), true);
	for (i = 0; i < COUNT(reports); i++)
		assert_refused(reports[i], "not_exposed", NOT_EXPOSED);
	sql_ok(f, "UPDATE events SET state = 'completed'");
	assert_refused(
	    GET, "not_dispatchable", "event 101 can no longer be dispatched");
	assert_non_null(
	    strstr(call(false, "{\"action\":\"get_dispatch\"}"), "null"));
	assert_string_equal("exposed 0",
	    sql_get(f,
		"SELECT delivery || ' ' || (pulled_at IS NOT NULL)"
		" FROM task_events"));
}

/* Delivery stays; the pull is written and the guard stood down. */
static void
the_first_get_of_a_launch_exposure_pulls(void **state)
{
	launched();
	assert_string_equal("exposed armed 0 pending",
	    sql_get(f,
		"SELECT delivery || ' ' || guard || ' ' ||"
		" (pulled_at IS NOT NULL) || ' ' || o.state"
		" FROM task_events t JOIN outbox o ON"
		" o.event_id = t.event_id"));
	fixture_wait(1000);
	(void)call(false, GET);
	assert_string_equal("exposed canceled 1 canceled get_dispatch",
	    sql_get(f,
		"SELECT delivery || ' ' || guard || ' ' ||"
		" (pulled_at > exposed_at) || ' ' || o.state || ' ' || o.note"
		" FROM task_events t JOIN outbox o ON"
		" o.event_id = t.event_id"));
}

static void
a_second_get_changes_no_column(void **state)
{
	static const char *const gets[] = {GET, "{\"action\":\"get_dispatch\"}",
	    "{\"action\":\"get_dispatch\",\"params\":{}}"};

	pulled();
	assert_writes_nothing(gets, COUNT(gets), false);
	(void)call(false, ACK(""));
	assert_writes_nothing(gets, 1, false);
	(void)call(false, COMPLETE("failed", ""));
	assert_writes_nothing(gets, 1, false);
}

/* By id and as the earliest they agree: served once pulled, else not. */
static void
finished_work_is_served_once_pulled(void **state)
{
	static const char *const earliest = "{\"action\":\"get_dispatch\"}";

	launched();
	sql_ok(f, "UPDATE events SET state = 'completed'");
	assert_refused(
	    GET, "not_dispatchable", "event 101 can no longer be dispatched");
	assert_non_null(strstr(call(false, "%s", earliest), "null"));
	sql_ok(f, "UPDATE task_events SET pulled_at = 'x'");
	assert_non_null(strstr(call(false, GET), "\"event_id\": 101"));
	assert_non_null(
	    strstr(call(false, "%s", earliest), "\"event_id\": 101"));
}

/* ---- reports ------------------------------------------------------------- */

#define RECEIPT(delivery, more) \
	"{\n  \"event_id\": 101,\n  \"delivery\": \"" delivery "\"" more "\n}"
#define ACK_CONFLICT "another acknowledgement of event 101 stands"
#define REPORT_CONFLICT "another report of event 101 stands"

static void
an_acknowledgement_is_given_once(void **state)
{
	static const char *const same[] = {ACK(",\"ack_id\":7"),
	    ACK(",\"ack_id\":\"7\""), ACK(""), ACK(",\"ack_id\":null")};
	static const char *const other[] = {
	    ACK(",\"ack_id\":8"), ACK(",\"ack_id\":\"9007199254740993\"")};
	size_t i;

	pulled();
	(void)call(false, "%s", same[0]);
	assert_writes_nothing(same, COUNT(same), false);
	for (i = 0; i < COUNT(same); i++)
		assert_answer(
		    same[i], RECEIPT("delivered", ",\n  \"ack_id\": 7"));
	assert_writes_nothing(other, COUNT(other), true);
	for (i = 0; i < COUNT(other); i++)
		assert_refused(other[i], "report_conflict", ACK_CONFLICT);
	assert_int_equal(7, sql_int(f, "SELECT ack_id FROM task_events"));
}

static void
an_acknowledgement_without_an_id_stays_so(void **state)
{
	pulled();
	assert_answer(ACK(""), RECEIPT("delivered", ""));
	assert_refused(ACK(",\"ack_id\":7"), "report_conflict", ACK_CONFLICT);
	assert_string_equal(
	    "1", sql_get(f, "SELECT ack_id IS NULL FROM task_events"));
}

static void
no_acknowledgement_is_named_after_completion(void **state)
{
	static const char *const late = ACK(",\"ack_id\":7");

	pulled();
	(void)call(false, COMPLETE("succeeded", ""));
	assert_writes_nothing(&late, 1, true);
	assert_refused(late, "report_conflict", ACK_CONFLICT);
	assert_answer(
	    ACK(""), RECEIPT("completed", ",\n  \"outcome\": \"succeeded\""));
}

static void
to_complete_is_to_acknowledge(void **state)
{
	const char *at;

	pulled();
	fixture_wait(1000);
	(void)call(false, COMPLETE("succeeded", ""));
	assert_string_equal("1",
	    sql_get(f,
		"SELECT delivered_at = completed_at AND"
		" delivered_at > pulled_at FROM task_events"));
	teardown(NULL);
	setup(NULL);
	pulled();
	fixture_wait(1000);
	(void)call(false, ACK(",\"ack_id\":7"));
	at = sql_get(f, "SELECT delivered_at FROM task_events");
	fixture_wait(1000);
	(void)call(false, COMPLETE("failed", ""));
	assert_string_equal(
	    at, sql_get(f, "SELECT delivered_at FROM task_events"));
	assert_string_equal("1",
	    sql_get(f, "SELECT completed_at > delivered_at FROM task_events"));
}

#define LINKS ",\"links\":[\"https://a.test/1\",\"HTTP://b.test\"]"

static void
a_report_is_given_once(void **state)
{
	static const char *const same =
	    COMPLETE("succeeded", LINKS ",\"reply_id\":9");
	static const char *const others[] = {
	    COMPLETE("failed", LINKS ",\"reply_id\":9"),
	    COMPLETE("succeeded", LINKS ",\"reply_id\":8"),
	    COMPLETE("succeeded", LINKS),
	    COMPLETE("succeeded", ",\"reply_id\":9"),
	    COMPLETE("succeeded",
		",\"links\":[\"HTTP://b.test\",\"https://a.test/1\"],"
		"\"reply_id\":9"),
	    COMPLETE("succeeded",
		",\"links\":[\"https://a.test/1\"],\"reply_id\":9"),
	    COMPLETE("succeeded",
		",\"links\":[\"https://a.test/1\",\"http://b.test\"],"
		"\"reply_id\":9"),
	};
	size_t i;

	pulled();
	(void)call(false, ACK(",\"ack_id\":7"));
	for (i = 0; i < 2; i++) {
		assert_answer(same,
		    RECEIPT("completed",
			",\n  \"ack_id\": 7,\n  \"outcome\": \"succeeded\","
			"\n  \"reply_id\": 9,\n  \"links\": [\n    "
			"\"https://a.test/1\",\n    \"HTTP://b.test\"\n  ]"));
		assert_writes_nothing(&same, 1, false);
	}
	assert_writes_nothing(others, COUNT(others), true);
	for (i = 0; i < COUNT(others); i++)
		assert_refused(others[i], "report_conflict", REPORT_CONFLICT);
}

/* By what they say, in their order; none at all is one report with []. */
static void
links_compare_by_content_and_order(void **state)
{
	static const char *const none[] = {COMPLETE("succeeded", ""),
	    COMPLETE("succeeded", ",\"links\":null"),
	    COMPLETE("succeeded", ",\"links\":[]")};
	static const char *const spelled[] = {
	    COMPLETE("failed", ",\"links\":[\"https://x.test/\\u00e4\"]"),
	    COMPLETE(
		"failed", ",\"links\":[ \"https:\\/\\/x.test/\xc3\xa4\" ]"),
	};
	size_t i;

	pulled();
	(void)call(false, "%s", none[0]);
	assert_writes_nothing(none, COUNT(none), false);
	for (i = 0; i < COUNT(none); i++)
		assert_answer(none[i],
		    RECEIPT("completed", ",\n  \"outcome\": \"succeeded\""));
	teardown(NULL);
	setup(NULL);
	pulled();
	(void)call(false, "%s", spelled[0]);
	assert_writes_nothing(spelled, COUNT(spelled), false);
}

/*
 * The settlement writes the record before the row, and then supersedes, all in
 * one transaction: what a report can meet is a record that is completed
 * already. It is kept, and the record stays.
 */
static void
a_report_behind_the_settlement_is_kept(void **state)
{
	const struct move settle = {.event_id = 101,
	    .to = RECORD_COMPLETED,
	    .from = RECORD_SET(RECORD_DISPATCHED)};
	int64_t revision;

	pulled();
	assert_int_equal(MOVED, record_move(&f->l, &settle));
	sql_reset_all(&f->l);
	revision = sql_int(f, "SELECT revision FROM events");
	assert_answer(COMPLETE("failed", ",\"reply_id\":9"),
	    RECEIPT("completed",
		",\n  \"outcome\": \"failed\",\n  \"reply_id\": 9"));
	assert_string_equal("completed failed completed",
	    sql_get(f,
		"SELECT delivery || ' ' || outcome || ' ' || state FROM"
		" task_events t JOIN events e ON e.id = t.event_id"));
	assert_int_equal(revision, sql_int(f, "SELECT revision FROM events"));
	/* After END nothing can be reported any more. */
	(void)end_attempt(f, ATT_1, "finished");
	assert_refused(COMPLETE("failed", ",\"reply_id\":9"),
	    "task_token_refused", NOT_CURRENT);
}

/* What is wrong is said in the domain's words, and nothing was written. */
static void
an_invalid_report_says_what_is_wrong(void **state)
{
	static const struct {
		const char *arguments, *text;
	} rows[] = {
	    {COMPLETE("unknown", ""), "outcome is succeeded or failed"},
	    {COMPLETE("Succeeded", ""), "outcome is succeeded or failed"},
	    {COMPLETE("succeeded\\u0000", ""),
		"outcome is succeeded or failed"},
	    {COMPLETE("failed",
		 ",\"links\":[\"https://x.test\","
		 "\"ftp://x.test\"]"),
		"link 2 is not an http or https URL"},
	    {COMPLETE("failed", ",\"links\":[\"//x.test\"]"),
		"link 1 is not an http or https URL"},
	    {COMPLETE("failed", ",\"links\":[\"https:///path\"]"),
		"link 1 is not an http or https URL"},
	    {COMPLETE("failed", ",\"links\":[\"\"]"),
		"link 1 is not an http or https URL"},
	    {COMPLETE("failed", ",\"links\":[\"javascript:x\"]"),
		"link 1 is not an http or https URL"},
	    {COMPLETE("failed", ",\"links\":[\"http://x.test/\\u0000\"]"),
		"link 1 is not an http or https URL"},
	    {COMPLETE("nonsense", ",\"links\":[\"ftp://x.test\"]"),
		"outcome is succeeded or failed"},
	};
	struct buffer many = {0}, longest = {0};
	char *before, *after;
	size_t i;

	pulled();
	before = everything();
	for (i = 0; i < COUNT(rows); i++)
		assert_refused(
		    rows[i].arguments, "invalid_report", rows[i].text);
	buffer_add_text(&many,
	    "{\"action\":\"complete_dispatch\",\"params\":{\"event_id\":101,"
	    "\"outcome\":\"failed\",\"links\":[\"http://x.test\"");
	buffer_add(&longest, many.bytes, many.len - 1);
	for (i = 1; i < 21; i++)
		buffer_add_text(&many, ",\"http://x.test\"");
	buffer_add_text(&many, "]}}");
	assert_refused(many.bytes, "invalid_report", "at most 20 links");
	for (i = strlen("http://x.test"); i < 2049; i++)
		buffer_add_char(&longest, i == 13 ? '/' : 'a');
	buffer_add_text(&longest, "\"]}}");
	assert_refused(
	    longest.bytes, "invalid_report", "link 1 is over 2048 bytes");
	after = everything();
	assert_string_equal(before, after);
	/* At its bounds it is fine. */
	memmove(longest.bytes + 150, longest.bytes + 151, longest.len - 150);
	(void)call(false, "%s", longest.bytes);
	free(before);
	free(after);
	buffer_free(&many);
	buffer_free(&longest);
}

/* ---- the token ----------------------------------------------------------- */

static const char *const all_calls[] = {
    GET,
    "{\"action\":\"get_dispatch\"}",
    "{\"action\":\"get_dispatch\",\"params\":{\"event_id\":404}}",
    ACK(""),
    ACK(",\"ack_id\":7"),
    "{\"action\":\"ack_dispatch\",\"params\":{\"event_id\":404}}",
    COMPLETE("succeeded", ""),
    COMPLETE("nonsense", ""),
    COMPLETE("failed", ",\"links\":[\"ftp://x.test\"]"),
    ACT("complete_dispatch", ",\"outcome\":\"failed\",\"links\":[\"\"]"),
};

/*
 * Valid exactly while the task is not superseded, and asked for inside each
 * call's own transaction: the very next call hears it, whatever it says.
 */
static void
a_superseded_worker_hears_that_first(void **state)
{
	size_t i;

	pulled();
	assert_non_null(strstr(
	    call(true, "%s", COMPLETE("nonsense", "")), "invalid_report"));
	assert_int_equal(1, task_supersede(&f->l, 1));
	sql_reset_all(&f->l);
	assert_writes_nothing(all_calls, COUNT(all_calls), true);
	for (i = 0; i < COUNT(all_calls); i++)
		assert_refused(all_calls[i], "task_token_refused", NOT_CURRENT);
	/* What was handed over stays so: the settlement says how it ended. */
	assert_string_equal("dispatched exposed",
	    sql_get(f,
		"SELECT state || ' ' || delivery FROM task_events t"
		" JOIN events e ON e.id = t.event_id"));
	/* A token that never was reads the same. */
	memset(w->server.token, 'A', TOKEN_LEN);
	for (i = 0; i < COUNT(all_calls); i++)
		assert_refused(all_calls[i], "task_token_refused", NOT_CURRENT);
}

/* Superseded while the call waits in the ledger's own turn. */
static void
the_token_is_asked_for_in_the_calls_transaction(void **state)
{
	struct msg end, get = {.type = MSG_GET_DISPATCH};
	size_t at;

	launched();
	end = end_of(ATT_1, "finished");
	get.get_dispatch.token = w->server.token;
	get.get_dispatch.event_id = 101;
	at = f->reply_count;
	fixture_add(f, &end, ROLE_DISPATCHER, "");
	fixture_add(f, &get, ROLE_MCPD, ATT_1);
	fixture_turn(f); /* one group, one COMMIT */
	assert_int_equal(MSG_ENDED, f->replies[at]->type);
	assert_failed(f->replies[at + 1], "task_token_refused");
	assert_string_equal(
	    "0", sql_get(f, "SELECT pulled_at IS NOT NULL FROM task_events"));
}

/* Another task's event and one that is none read the same, three times. */
static void
what_is_not_on_the_task_reads_the_same(void **state)
{
	static const char *const actions[] = {
	    "get_dispatch", "ack_dispatch", "complete_dispatch"};
	char *want;
	size_t i, j;
	int ids_tried[] = {102, 404};

	pulled();
	(void)record_event(f, 102);
	(void)admit_event(f, 102, "another");
	sql_ok(f,
	    "UPDATE events SET route = '" OTHER_ROUTE "', bucket_id = 11"
	    " WHERE id = 102");
	assert_int_equal(TOKEN_LEN, strlen(launch(f, 102, ATT_2)));
	for (i = 0; i < COUNT(actions); i++) {
		for (j = 0; j < COUNT(ids_tried); j++) {
			(void)xasprintf(&want,
			    "{\n  \"error\": \"not_on_task\",\n  \"message\": "
			    "\"event %d is not on this task\"\n}",
			    ids_tried[j]);
			assert_string_equal(want,
			    call(true,
				"{\"action\":\"%s\",\"params\":{\"event_id\":"
				"%d%s}}",
				actions[i], ids_tried[j],
				i == 2 ? ",\"outcome\":\"failed\"" : ""));
			free(want);
		}
	}
}

/* ---- what the model must not see ----------------------------------------- */

static int
interrupt(void *arg)
{
	int *left = arg;

	return (*left)-- > 0;
}

/* The ledger's own troubles are one generic text; a bad link's are not. */
static void
a_fault_of_the_storage_stays_inside(void **state)
{
	static const char *const calls[] = {
	    GET, ACK(""), COMPLETE("succeeded", "")};
	int left = 1, tries;
	const char *line = NULL;
	size_t i;

	pulled();
	sql_ok(f,
	    "CREATE TRIGGER broken BEFORE UPDATE ON task_events BEGIN SELECT"
	    " RAISE(ABORT, 'disk I/O error at /var/lib/x'); END");
	for (i = 1; i < COUNT(calls); i++)
		assert_refused(calls[i], "unavailable", GENERIC);
	sql_ok(f, "DROP TRIGGER broken");
	/* What may pass is asked again, and the model hears none of it. */
	sqlite3_progress_handler(f->l.db, 1, interrupt, &left);
	world_say(w,
	    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\","
	    "\"params\":{\"name\":\"" CONNECT "\",\"arguments\":" ACK("") "}}");
	world_expect_silence(w);
	assert_string_equal("BEGIN: interrupted", f->trouble);
	for (tries = 0; line == NULL && tries < 100; tries++) {
		fixture_wait(1000);
		(void)event_base_loop(w->base, EVLOOP_ONCE);
		line = world_hear(w);
	}
	assert_non_null(line);
	assert_non_null(strstr(line, "delivered"));
	assert_null(strstr(line, "interrupted"));
	sqlite3_progress_handler(f->l.db, 0, NULL, NULL);
	assert_refused(COMPLETE("failed", ",\"links\":[\"ftp://x\"]"),
	    "invalid_report", "link 1 is not an http or https URL");
}

/* ---- the lock ------------------------------------------------------------ */

static int built;

/* By a process of its own, without patience: SQLite's code. */
static int
another_writes(void)
{
	char path[128];
	int status;
	pid_t pid;

	(void)snprintf(path, sizeof(path), "%s/" DATABASE_NAME, f->dir);
	pid = fork();
	if (pid == 0) {
		(void)execl(
		    "/proc/self/exe", "test_domain", path, (char *)NULL);
		_exit(126);
	}
	assert_int_equal(pid, waitpid(pid, &status, 0));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int
write_once(const char *path)
{
	sqlite3 *db;
	int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db,
		    "BEGIN IMMEDIATE;"
		    "INSERT INTO gaps (detected_at, class) VALUES"
		    " ('2026-01-05T09:00:00.000000000Z', 'retention');"
		    "COMMIT",
		    NULL, NULL, NULL);
	(void)sqlite3_close(db);
	return rc & 0xff;
}

/*
 * The answer has yet to be built: the snapshot is as it was stored. The ledger
 * holds nothing, another process writes, and another request is served.
 */
static void
serve_others(void)
{
	const struct msg *reply = f->replies[f->reply_count - 1];
	char *own = mention_of(AGENT);

	if (reply->type == MSG_INSTRUCTION)
		assert_non_null(memmem(reply->instruction.snapshot.bytes,
		    reply->instruction.snapshot.len, own, strlen(own)));
	assert_int_equal(1, sqlite3_get_autocommit(f->l.db));
	assert_int_equal(SQLITE_TXN_NONE, sqlite3_txn_state(f->l.db, NULL));
	assert_int_equal(SQLITE_OK, another_writes());
	assert_true(record_event(f, 5000 + built));
	built++;
	free(own);
}

static void
nobody_waits_while_an_answer_is_built(void **state)
{
	static const char *const calls[] = {GET, ACK(""),
	    COMPLETE("succeeded", ""), ACT("get_dispatch", ",\"id\":1")};
	size_t i;

	launched_with_everything();
	built = 0;
	after_commit = serve_others;
	for (i = 0; i < 3; i++) {
		(void)call(false, "%s", calls[i]); /* it writes */
		(void)call(false, "%s", calls[i]); /* the repeat does not */
	}
	assert_int_equal(6, built);
	(void)call(true, "%s", calls[3]); /* the ledger is not asked */
	assert_int_equal(6, built);
	(void)call(true, "%s", COMPLETE("failed", "")); /* a refusal */
	assert_int_equal(7, built);
	assert_null(strstr(call(false, GET), "bc-attachment"));
	assert_int_equal(8, sql_int(f, "SELECT COUNT(*) FROM gaps"));
}

static const struct {
	int statement;
	const char *wants;
} lock_rows[] = {
    {STMT_BEGIN, "BEGIN IMMEDIATE"},
    {STMT_COMMIT, "COMMIT"},
};

/* No statement of the ledger begins a transaction of another kind. */
static void
the_lock_is_taken_at_once(void **state)
{
	size_t i;
	int id;

	for (i = 0; i < COUNT(lock_rows); i++)
		assert_string_equal(lock_rows[i].wants,
		    sql_text((enum stmt)lock_rows[i].statement));
	for (id = 0; id < STMT_COUNT; id++)
		if (id != STMT_BEGIN)
			assert_int_not_equal(
			    0, strncmp(sql_text(id), "BEGIN", 5));
}

int
main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	static const struct CMUnitTest tests[] = {
	    TRAP("T44", ids_are_whole_and_never_rounded, setup, teardown),
	    TRAP("T44", an_id_beyond_doubles_is_a_string, setup, teardown),
	    TRAP("T42", an_instruction_is_exactly_this, setup, teardown),
	    TEST(nothing_waiting_is_said_so),
	    TRAP("T19", a_launch_exposure_is_no_pull, setup, teardown),
	    TRAP("T20", the_first_get_of_a_launch_exposure_pulls, setup,
		teardown),
	    TRAP("T21", a_second_get_changes_no_column, setup, teardown),
	    TRAP("T29", finished_work_is_served_once_pulled, setup, teardown),
	    TRAP("T31", an_acknowledgement_is_given_once, setup, teardown),
	    TRAP("T31", an_acknowledgement_without_an_id_stays_so, setup,
		teardown),
	    TRAP("T32", no_acknowledgement_is_named_after_completion, setup,
		teardown),
	    TRAP("T34", to_complete_is_to_acknowledge, setup, teardown),
	    TRAP("T35", a_report_is_given_once, setup, teardown),
	    TRAP("T90", links_compare_by_content_and_order, setup, teardown),
	    TRAP(
		"T36", a_report_behind_the_settlement_is_kept, setup, teardown),
	    TRAP("T37", an_invalid_report_says_what_is_wrong, setup, teardown),
	    TRAP("T38 I3", a_superseded_worker_hears_that_first, setup,
		teardown),
	    TRAP("I3", the_token_is_asked_for_in_the_calls_transaction, setup,
		teardown),
	    TRAP(
		"T39", what_is_not_on_the_task_reads_the_same, setup, teardown),
	    TRAP("T43", a_fault_of_the_storage_stays_inside, setup, teardown),
	    TRAP("T41 I18", nobody_waits_while_an_answer_is_built, setup,
		teardown),
	    TRAP("I18", the_lock_is_taken_at_once, setup, teardown),
	};

	if (argc == 2)
		return write_once(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
