/* What a worker is handed, whole, and while nobody waits (ledger.md 6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base64.h"
#include "common/digest.h"
#include "common/xmalloc.h"
#include "tests/unit/domain_scene.h"
#include "tests/unit/trap.h"

#define BIG INT64_C(9007199254740993) /* 2^53 + 1 */

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

	domain_launch();
	for (i = 0; i < COUNT(ids); i++) {
		for (j = 0; j < COUNT(id_places); j++) {
			(void)xasprintf(&arguments, "%s%s%s",
			    id_places[j].before, ids[i].value,
			    id_places[j].after);
			text =
			    world_call(domain.w, CONNECT, arguments, &is_error);
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
	(void)record_event(domain.f, BIG - 1);
	domain_use(launch_new(domain.f, BIG, ATT_1));
	assert_non_null(
	    strstr(domain_call(true,
		       "{\"action\":\"get_dispatch\",\"params\":{\"event_id\":"
		       "9007199254740993}}"),
		"event_id"));
	assert_non_null(
	    strstr(domain_call(false,
		       "{\"action\":\"get_dispatch\",\"params\":{\"event_id\":"
		       "\"9007199254740993\"}}"),
		"\"event_id\": 9007199254740993,"));
	(void)domain_call(true,
	    "{\"action\":\"get_dispatch\",\"params\":{\"event_id\":null}}");
	assert_string_equal("9007199254740993",
	    sql_get(domain.f, "SELECT event_id FROM task_events"));
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

	(void)record_event(domain.f, 101);
	sql_ok(domain.f, "UPDATE events SET details = 'needle-details'");
	(void)xasprintf(&snapshot,
	    "{\"type\":\"Comment\",\"title\":\"Re: Kickoff\",\"app_url\":"
	    "\"https://needle.test\",\"content\":\"<p>%s fix it</p>\","
	    "\"updated_at\":\"2026-01-05T08:59:00Z\",\"project_name\":"
	    "\"needle-project\",\"requester_name\":\"needle-name\",\"role\":"
	    "\"operator\",\"owner\":true}",
	    own);
	m = verdict_of(domain.f, 101, "admitted");
	m.verdict.snapshot = (struct blob){snapshot, strlen(snapshot)};
	(void)fixture_get(domain.f, &m, ROLE_INTAKE, "", MSG_VERDICT_IS);
	domain_use(launch(domain.f, 101, ATT_1));
	free(snapshot);
	free(own);
}

static void
an_instruction_is_exactly_this(void **state)
{
	char hash[DIGEST_HEX_SIZE];
	const char *text;

	launched_with_everything();
	digest_sha256_hex(domain.w->server.token, TOKEN_LEN, hash);
	assert_string_equal(
	    hash, sql_get(domain.f, "SELECT token_sha256 FROM tasks"));
	text = domain_call(false, GET);
	assert_string_equal(WHOLE("false", "exposed", "<p>  fix it</p>"), text);
	assert_null(strstr(text, domain.w->server.token));
	assert_null(strstr(text, hash));
	assert_null(strstr(text, ROUTE));
	assert_null(strstr(text, "needle"));
	assert_null(strstr(text, ATT_1));
	/* What the row says now, and not what the launch had said. */
	(void)domain_call(false, ACK(",\"ack_id\":7"));
	domain_answers(GET, WHOLE("false", "delivered", "<p>  fix it</p>"));
	sql_ok(domain.f, "UPDATE events SET class = '', reply_kind = ''");
	text = domain_call(false, GET);
	assert_null(strstr(text, "class"));
	assert_non_null(strstr(text, "\"reply_to\": null,"));
}

static void
nothing_waiting_is_said_so(void **state)
{
	domain_pull();
	(void)domain_call(false, ACK(""));
	domain_answers("{\"action\":\"get_dispatch\"}",
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

	domain_launch();
	domain_writes_nothing(reports, COUNT(reports), true);
	for (i = 0; i < COUNT(reports); i++)
		domain_refuses(reports[i], "not_exposed", NOT_EXPOSED);
	sql_ok(domain.f, "UPDATE events SET state = 'completed'");
	domain_refuses(
	    GET, "not_dispatchable", "event 101 can no longer be dispatched");
	assert_non_null(strstr(
	    domain_call(false, "{\"action\":\"get_dispatch\"}"), "null"));
	assert_string_equal("exposed 0",
	    sql_get(domain.f,
		"SELECT delivery || ' ' || (pulled_at IS NOT NULL)"
		" FROM task_events"));
}

/* Delivery stays; the pull is written and the guard stood down. */
static void
the_first_get_of_a_launch_exposure_pulls(void **state)
{
	domain_launch();
	assert_string_equal("exposed armed 0 pending",
	    sql_get(domain.f,
		"SELECT delivery || ' ' || guard || ' ' ||"
		" (pulled_at IS NOT NULL) || ' ' || o.state"
		" FROM task_events t JOIN outbox o ON"
		" o.event_id = t.event_id"));
	fixture_wait(1000);
	(void)domain_call(false, GET);
	assert_string_equal("exposed canceled 1 canceled get_dispatch",
	    sql_get(domain.f,
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

	domain_pull();
	domain_writes_nothing(gets, COUNT(gets), false);
	(void)domain_call(false, ACK(""));
	domain_writes_nothing(gets, 1, false);
	(void)domain_call(false, COMPLETE("failed", ""));
	domain_writes_nothing(gets, 1, false);
}

/* By id and as the earliest they agree: served once pulled, else not. */
static void
finished_work_is_served_once_pulled(void **state)
{
	static const char *const earliest = "{\"action\":\"get_dispatch\"}";

	domain_launch();
	sql_ok(domain.f, "UPDATE events SET state = 'completed'");
	domain_refuses(
	    GET, "not_dispatchable", "event 101 can no longer be dispatched");
	assert_non_null(strstr(domain_call(false, "%s", earliest), "null"));
	sql_ok(domain.f, "UPDATE task_events SET pulled_at = 'x'");
	assert_non_null(strstr(domain_call(false, GET), "\"event_id\": 101"));
	assert_non_null(
	    strstr(domain_call(false, "%s", earliest), "\"event_id\": 101"));
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

	(void)snprintf(path, sizeof(path), "%s/" DATABASE_NAME, domain.f->dir);
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
	const struct msg *reply = domain.f->replies[domain.f->reply_count - 1];
	char *own = mention_of(AGENT);

	if (reply->type == MSG_INSTRUCTION)
		assert_non_null(memmem(reply->instruction.snapshot.bytes,
		    reply->instruction.snapshot.len, own, strlen(own)));
	assert_int_equal(1, sqlite3_get_autocommit(domain.f->l.db));
	assert_int_equal(
	    SQLITE_TXN_NONE, sqlite3_txn_state(domain.f->l.db, NULL));
	assert_int_equal(SQLITE_OK, another_writes());
	assert_true(record_event(domain.f, 5000 + built));
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
	domain.after_commit = serve_others;
	for (i = 0; i < 3; i++) {
		(void)domain_call(false, "%s", calls[i]); /* it writes */
		(void)domain_call(
		    false, "%s", calls[i]); /* the repeat does not */
	}
	assert_int_equal(6, built);
	(void)domain_call(true, "%s", calls[3]); /* the ledger is not asked */
	assert_int_equal(6, built);
	(void)domain_call(true, "%s", COMPLETE("failed", "")); /* a refusal */
	assert_int_equal(7, built);
	assert_null(strstr(domain_call(false, GET), "bc-attachment"));
	assert_int_equal(8, sql_int(domain.f, "SELECT COUNT(*) FROM gaps"));
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
#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, domain_setup, domain_teardown)
#define T(traps, name) TRAP(traps, name, domain_setup, domain_teardown)
	static const struct CMUnitTest tests[] = {
	    T("T44", ids_are_whole_and_never_rounded),
	    T("T44", an_id_beyond_doubles_is_a_string),
	    T("T42", an_instruction_is_exactly_this),
	    TEST(nothing_waiting_is_said_so),
	    T("T19", a_launch_exposure_is_no_pull),
	    T("T20", the_first_get_of_a_launch_exposure_pulls),
	    T("T21", a_second_get_changes_no_column),
	    T("T29", finished_work_is_served_once_pulled),
	    T("T41 I18", nobody_waits_while_an_answer_is_built),
	    T("I18", the_lock_is_taken_at_once),
	};

	if (argc == 2)
		return write_once(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
