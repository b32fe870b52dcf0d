#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/xmalloc.h"
#include "ledger/startable.h"
#include "tests/unit/ledger_fixture.h"

/* ---- time -------------------------------------------------------------- */

static int64_t elapsed_ns;

static void
fixture_now(clockid_t id, struct timespec *out)
{
	/* 2026-01-05T09:00:00Z */
	int64_t ns = INT64_C(1767603600) * 1000000000 + elapsed_ns;

	out->tv_sec = ns / 1000000000;
	out->tv_nsec = ns % 1000000000;
}

static const struct clock_source fixture_clock = {fixture_now};

void
fixture_wait(int64_t ms)
{
	elapsed_ns += ms * 1000000;
}

/* ---- the results of a turn --------------------------------------------- */

static void
note_order(struct fixture *f, char what)
{
	assert_true(f->order_count + 1 < sizeof(f->order));
	f->order[f->order_count++] = what;
}

static void
take_line(const char *text, void *arg)
{
	struct fixture *f = arg;

	assert_true(f->line_count < FIXTURE_MOST);
	f->lines[f->line_count++] = xstrdup(text);
	note_order(f, 'l');
}

static void
take_lines_end(void *arg)
{
	note_order(arg, '.');
}

/* As it would arrive: encoded, decoded, within the table's bounds. */
static struct msg *
pass(struct msg *m)
{
	struct frame frame;
	struct error e;
	struct msg *out;

	if (frame_encode(m, &frame, &e) == -1)
		fail_msg("%s", e.text);
	out =
	    frame_decode(frame.bytes, frame.len, frame.fds, frame.fd_count, &e);
	if (out == NULL)
		fail_msg("%s", e.text);
	frame.fd_count = 0;
	frame_free(&frame);
	return out;
}

static void
take_reply(const struct reply_to *to, struct msg *m, void *arg)
{
	struct fixture *f = arg;

	assert_true(f->reply_count < FIXTURE_MOST);
	f->replies[f->reply_count++] = pass(m);
	note_order(f, 'r');
}

static void
take_notice(const char *attempt, struct msg *m, void *arg)
{
	struct fixture *f = arg;
	struct told *n = &f->notices[f->notice_count++];

	assert_true(f->notice_count < FIXTURE_MOST);
	*n = (struct told){.type = m->type};
	switch (m->type) {
	case MSG_WORK_WAITS:
		n->id = m->work_waits.event_id;
		break;
	case MSG_POST_WAITS:
		n->id = m->post_waits.intent_id;
		break;
	case MSG_UNDECIDED_WAITS:
		n->id = m->undecided_waits.event_id;
		break;
	case MSG_SUPERSEDED:
		assert_string_equal("", attempt); /* for the dispatcher */
		attempt = m->superseded.attempt;
		break;
	case MSG_ATTEMPT_OVER:
		assert_string_equal("", attempt);
		attempt = m->attempt_over.attempt;
		break;
	default:
		n->id = m->post_settled.intent_id;
		break;
	}
	(void)snprintf(n->attempt, sizeof(n->attempt), "%s", attempt);
	note_order(f, 'n');
}

static void
take_trouble(const char *text, void *arg)
{
	struct fixture *f = arg;

	(void)snprintf(f->trouble, sizeof(f->trouble), "%s", text);
}

static void
take_unknown(const char *text, void *arg)
{
	longjmp(((struct fixture *)arg)->unknown, 1);
}

static const struct turn_ops fixture_ops = {take_line, take_lines_end,
    take_reply, take_notice, take_trouble, take_unknown};

/* ---- its life ---------------------------------------------------------- */

static struct config *
fixture_config(void)
{
	struct config *c = config_new();

	c->generation = 1;
	c->readable = true;
	c->account_id = 999;
	c->agent_id = AGENT;
	c->operator_id = OPERATOR;
	config_route_add(c, PROJECT, ROUTE, "web", false);
	config_route_add(c, OTHER_PROJECT, OTHER_ROUTE, "", false);
	return c;
}

void
fixture_config_changed(struct fixture *f)
{
	f->l.config = f->config;
	assert_int_equal(0, startable_configure(&f->l));
}

void
fixture_handlers(struct fixture *f, const handler *handlers)
{
	turn_free(f->turn);
	f->turn = turn_new(&f->l, handlers, &fixture_ops, f);
}

static void
fixture_open(struct fixture *f)
{
	struct error e;

	if (database_open(&f->l, f->dir, NULL, NULL, &e) != OPEN_OK)
		fail_msg("%s", e.text);
	(void)snprintf(f->l.boot_id, sizeof(f->l.boot_id), "%s",
	    "11111111-2222-3333-4444-555555555555");
	(void)snprintf(f->l.run_id, sizeof(f->l.run_id), "%s",
	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	fixture_handlers(f, ledger_handlers);
	fixture_config_changed(f);
}

int
fixture_setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	elapsed_ns = 0;
	clock_set_source(&fixture_clock);
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/test_ledger.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->config = fixture_config();
	fixture_open(f);
	*state = f;
	return 0;
}

static void
fixture_close(struct fixture *f)
{
	turn_free(f->turn);
	f->turn = NULL;
	database_close(&f->l);
}

void
fixture_restart(struct fixture *f)
{
	fixture_close(f);
	fixture_open(f);
}

void
fixture_forget(struct fixture *f)
{
	while (f->line_count > 0)
		free(f->lines[--f->line_count]);
	f->notice_count = f->order_count = 0;
	memset(f->order, 0, sizeof(f->order));
}

static void
dir_remove(const char *dir)
{
	static const char *const names[] = {
	    "ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db-journal"};
	char path[128];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path);
	}
	assert_int_equal(0, rmdir(dir));
}

int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	fixture_close(f);
	fixture_forget(f);
	while (f->reply_count > 0)
		msg_free(f->replies[--f->reply_count]);
	config_free(f->config);
	dir_remove(f->dir);
	free(f);
	clock_set_source(NULL);
	return 0;
}

/* ---- asking ------------------------------------------------------------ */

void
fixture_add(
    struct fixture *f, struct msg *m, enum role_id from, const char *attempt)
{
	struct reply_to to = {.type = m->type};

	assert_true(msg_permitted(m->type, from, ROLE_LEDGER));
	turn_add(f->turn, pass(m), from, attempt, &to);
}

void
fixture_turn(struct fixture *f)
{
	turn_run(f->turn);
}

struct msg *
fixture_ask(
    struct fixture *f, struct msg *m, enum role_id from, const char *attempt)
{
	size_t before = f->reply_count;

	fixture_add(f, m, from, attempt);
	fixture_turn(f);
	assert_int_equal(before + 1, f->reply_count);
	return f->replies[before];
}

struct msg *
fixture_get(struct fixture *f, struct msg *m, enum role_id from,
    const char *attempt, enum msg_type type)
{
	struct msg *reply = fixture_ask(f, m, from, attempt);

	if (reply->type == MSG_FAILED && type != MSG_FAILED)
		fail_msg("%s: %s: %s", msg_name(m->type), reply->failed.reason,
		    reply->failed.text);
	assert_int_equal(type, reply->type);
	return reply;
}

void
assert_failed(const struct msg *m, const char *reason)
{
	if (m->type != MSG_FAILED)
		fail_msg("%s, not FAILED %s", msg_name(m->type), reason);
	assert_string_equal(reason, m->failed.reason);
}

/* ---- raw SQL ----------------------------------------------------------- */

static char *sql_text_of(const char *fmt, va_list ap)
    __attribute__((format(printf, 1, 0)));

static char *
sql_text_of(const char *fmt, va_list ap)
{
	char *text;

	if (vasprintf(&text, fmt, ap) == -1)
		abort();
	return text;
}

#define SQL_TEXT(text, fmt)                  \
	do {                                 \
		va_list ap;                  \
		va_start(ap, fmt);           \
		text = sql_text_of(fmt, ap); \
		va_end(ap);                  \
	} while (0)

static int
sql_exec(struct fixture *f, char *text)
{
	int rc = sqlite3_exec(f->l.db, text, NULL, NULL, NULL) & 0xff;

	free(text);
	return rc;
}

int
sql(struct fixture *f, const char *fmt, ...)
{
	char *text;

	SQL_TEXT(text, fmt);
	return sql_exec(f, text);
}

void
sql_ok(struct fixture *f, const char *fmt, ...)
{
	char *text;

	SQL_TEXT(text, fmt);
	if (sqlite3_exec(f->l.db, text, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", text, sqlite3_errmsg(f->l.db));
	free(text);
}

static void
triggers_set(struct fixture *f, int on)
{
	assert_int_equal(SQLITE_OK,
	    sqlite3_db_config(
		f->l.db, SQLITE_DBCONFIG_ENABLE_TRIGGER, on, NULL));
}

void
sql_put(struct fixture *f, const char *fmt, ...)
{
	char *text;

	SQL_TEXT(text, fmt);
	triggers_set(f, 0);
	if (sqlite3_exec(f->l.db, text, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", text, sqlite3_errmsg(f->l.db));
	triggers_set(f, 1);
	free(text);
}

void
sql_refused(struct fixture *f, const char *fmt, ...)
{
	char *text;
	int rc;

	SQL_TEXT(text, fmt);
	rc = sqlite3_exec(f->l.db, text, NULL, NULL, NULL) & 0xff;
	if (rc != SQLITE_CONSTRAINT)
		fail_msg("%s: %s", text, sqlite3_errmsg(f->l.db));
	free(text);
}

const char *
sql_get(struct fixture *f, const char *fmt, ...)
{
	static char results[16][4096];
	static unsigned int turn;
	char *text, *out = results[turn++ % 16];
	sqlite3_stmt *stmt;

	SQL_TEXT(text, fmt);
	if (sqlite3_prepare_v2(f->l.db, text, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", text, sqlite3_errmsg(f->l.db));
	*out = '\0';
	if (sqlite3_step(stmt) == SQLITE_ROW)
		(void)snprintf(out, 4096, "%s", row_text(stmt, 0));
	(void)sqlite3_finalize(stmt);
	free(text);
	return out;
}

int64_t
sql_int(struct fixture *f, const char *fmt, ...)
{
	char *text;
	int64_t n;

	SQL_TEXT(text, fmt);
	n = strtoll(sql_get(f, "%s", text), NULL, 10);
	free(text);
	return n;
}

const char *
state_of(struct fixture *f, int64_t id)
{
	return sql_get(
	    f, "SELECT state FROM events WHERE id = %lld", (long long)id);
}
