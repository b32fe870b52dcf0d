/* What domain_scene.h says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buffer.h"
#include "tests/unit/domain_scene.h"

struct domain domain;

/* Between the ledger's COMMIT and the answer that mcpd builds of it. */
static void
forward(struct world *world, const struct reply_to *to, const struct msg *m)
{
	struct msg copy = *m, *reply;

	reply = fixture_ask(domain.f, &copy, ROLE_MCPD, ATT_1);
	if (domain.after_commit != NULL)
		domain.after_commit();
	peer_reply(to, reply);
}

int
domain_setup(void **state)
{
	void *own;

	(void)fixture_setup(&own);
	domain.f = own;
	domain.after_commit = NULL;
	domain.w = world_open();
	domain.w->answer = forward;
	return 0;
}

int
domain_teardown(void **state)
{
	void *own = domain.f;

	domain.w->answer = NULL;
	world_free(domain.w);
	return fixture_teardown(&own);
}

const char *
domain_call(bool wants_error, const char *fmt, ...)
{
	char *arguments;
	const char *text;
	bool is_error;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&arguments, fmt, ap) == -1)
		abort();
	va_end(ap);
	text = world_call(domain.w, CONNECT, arguments, &is_error);
	assert_non_null(text);
	if (is_error != wants_error)
		fail_msg("%s: %s", arguments, text);
	free(arguments);
	return text;
}

void
domain_answers(const char *arguments, const char *want)
{
	assert_string_equal(want, domain_call(false, "%s", arguments));
}

void
domain_refuses(const char *arguments, const char *kind, const char *text)
{
	char want[512];

	(void)snprintf(want, sizeof(want),
	    "{\n  \"error\": \"%s\",\n  \"message\": \"%s\"\n}", kind, text);
	assert_string_equal(want, domain_call(true, "%s", arguments));
}

void
domain_use(const char *token)
{
	assert_int_equal(TOKEN_LEN, strlen(token));
	memcpy(domain.w->server.token, token, TOKEN_LEN + 1);
}

void
domain_launch(void)
{
	domain_use(launch_new(domain.f, 101, ATT_1));
}

void
domain_pull(void)
{
	domain_launch();
	(void)domain_call(false, GET);
}

/* Every value of every row, so that nothing may have been written. */
char *
domain_everything(void)
{
	struct buffer out = {0};
	sqlite3_stmt *tables, *rows;
	char sql_text[128];
	size_t len;
	int i;

	assert_int_equal(SQLITE_OK,
	    sqlite3_prepare_v2(domain.f->l.db,
		"SELECT name FROM sqlite_schema WHERE type = 'table'"
		" ORDER BY name",
		-1, &tables, NULL));
	while (sqlite3_step(tables) == SQLITE_ROW) {
		(void)snprintf(sql_text, sizeof(sql_text), "SELECT * FROM %s",
		    row_text(tables, 0));
		assert_int_equal(SQLITE_OK,
		    sqlite3_prepare_v2(
			domain.f->l.db, sql_text, -1, &rows, NULL));
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
void
domain_writes_nothing(const char *const *calls, size_t count, bool wants_error)
{
	char *before = domain_everything(), *after;
	int changes = sqlite3_total_changes(domain.f->l.db);
	size_t i;

	fixture_wait(1000);
	for (i = 0; i < count; i++)
		(void)domain_call(wants_error, "%s", calls[i]);
	after = domain_everything();
	assert_string_equal(before, after);
	assert_int_equal(changes, sqlite3_total_changes(domain.f->l.db));
	free(before);
	free(after);
}
