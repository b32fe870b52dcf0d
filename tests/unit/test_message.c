/* What is posted and how a listing is compared with it (operator.md 1.8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/text.h"
#include "outbox/message.h"

#define AGENT 52007412
#define SINCE "2026-07-14T06:10:00Z"

static void
addresses_and_bodies(void **state)
{
	static const struct {
		const char *kind, *create, *list;
	} cases[] = {
	    {"comment", "https://b/999/recordings/7/comments.json",
		"https://b/999/recordings/7/comments.json"},
	    {"boost", "https://b/999/recordings/7/boosts.json",
		"https://b/999/recordings/7/boosts.json"},
	    {"chat_line", "https://b/999/chats/7/lines.json",
		"https://b/999/chats/7/lines.json"
		"?sort=created_at&direction=desc"},
	};
	const struct message_kind *k;
	size_t i, len;
	char *text;

	for (i = 0; i < 3; i++) {
		k = message_kind(cases[i].kind);
		text = message_url("https://b", 999, k->create, 7);
		assert_string_equal(cases[i].create, text);
		free(text);
		text = message_url("https://b", 999, k->list, 7);
		assert_string_equal(cases[i].list, text);
		free(text);
	}
	assert_null(message_kind("todo"));
	text = message_body("a \"b\" \xff", 7, &len);
	assert_string_equal("{\"content\":\"a \\\"b\\\" \xef\xbf\xbd\"}", text);
	free(text);
}

static void
only_a_positive_id_is_a_receipt(void **state)
{
	static const struct {
		const char *answer;
		int64_t id;
	} cases[] = {{"{\"id\":5}", 5},
	    {"{\"id\":9007199254740993}", INT64_C(9007199254740993)},
	    {"{\"id\":0}", -1}, {"{\"id\":-4}", -1}, {"{\"id\":\"5\"}", -1},
	    {"{\"id\":5.0}", -1}, {"{}", -1}, {"[]", -1}, {"", -1},
	    {"{\"id\":5", -1}, {"<html>", -1}};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_true(cases[i].id ==
		    message_created_id(
			cases[i].answer, strlen(cases[i].answer)));
}

struct found {
	int64_t ids[8];
	size_t count;
};

static void
on_found(const struct message_found *m, void *arg)
{
	struct found *f = arg;

	f->ids[f->count++] = m->id;
}

#define ROW(id, who, when, content)                                            \
	"{\"id\":" #id ",\"creator\":{\"id\":" #who "},\"created_at\":\"" when \
	"\",\"content\":\"" content "\"}"

static int
page(const char *kind, const char *json, const char *body, struct found *f,
    size_t *rows, bool *older)
{
	char *text = text_normalise(body, strlen(body), NULL);
	struct error e;
	int64_t since;
	int rc;

	assert_int_equal(0, clock_parse(SINCE, &since));
	*f = (struct found){.count = 0};
	*rows = 0;
	*older = false;
	rc = message_page(message_kind(kind), json, strlen(json), AGENT, since,
	    text, on_found, f, rows, older, &e);
	free(text);
	return rc;
}

/* The agent's own words, re-wrapped, at or after the time: nobody else's. */
static void
what_counts_as_a_candidate(void **state)
{
	struct found f;
	size_t rows;
	bool older;

	assert_int_equal(0,
	    page("comment",
		"[" ROW(1, 52007412, "2026-07-14T06:10:00Z",
		    "<div>Done<br />it.</div>\\n") "," ROW(2, 7,
		    "2026-07-14T06:11:00Z", "Done it.") "," ROW(3, 52007412,
		    "2026-07-14T06:09:59.999Z", "Done it.") "," ROW(4, 52007412,
		    "2026-07-14T06:12:00Z", "Done it") "," ROW(5, 52007412,
		    "2026-07-14T06:12:00+00:00", "<p>Done</p> it.") "]",
		"<div>Done it.</div>", &f, &rows, &older));
	assert_int_equal(2, f.count);
	assert_int_equal(1, f.ids[0]);
	assert_int_equal(5, f.ids[1]);
	assert_int_equal(5, rows);
	assert_true(older);
}

/* A file in a chat says nothing; that must not hide what others say. */
static void
a_line_without_content_is_no_candidate(void **state)
{
	struct found f;
	size_t rows;
	bool older;

	assert_int_equal(0,
	    page("chat_line",
		"[{\"id\":1,\"creator\":{\"id\":52007412},\"created_at\":"
		"\"2026-07-14T06:10:00Z\",\"type\":\"Chat::Lines::Upload\"},"
		"{\"id\":2,\"creator\":{\"id\":52007412},\"created_at\":"
		"\"2026-07-14T06:10:00Z\",\"content\":null}," ROW(
		    3, 52007412, "2026-07-14T06:11:00Z", "Done it.") "]",
		"Done it.", &f, &rows, &older));
	assert_int_equal(1, f.count);
	assert_int_equal(3, f.ids[0]);
	assert_int_equal(3, rows);
	/* Not even of a body that is nothing but a picture. */
	assert_int_equal(0,
	    page("chat_line",
		"[{\"id\":1,\"creator\":{\"id\":52007412},\"created_at\":"
		"\"2026-07-14T06:10:00Z\"}]",
		"<img>", &f, &rows, &older));
	assert_int_equal(0, f.count);
}

static void
boosts_name_a_booster(void **state)
{
	struct found f;
	size_t rows;
	bool older;

	assert_int_equal(0,
	    page("boost",
		"[{\"id\":1,\"booster\":{\"id\":52007412},\"created_at\":"
		"\"2026-07-14T06:10:00Z\",\"content\":\"ok\"}]",
		"ok", &f, &rows, &older));
	assert_int_equal(1, f.count);
	assert_int_equal(-1,
	    page("boost",
		"[" ROW(1, 52007412, "2026-07-14T06:10:00Z", "ok") "]", "ok",
		&f, &rows, &older));
}

/* What is no listing is no shorter listing. */
static void
a_bad_page_is_an_error(void **state)
{
	static const char *const pages[] = {"", "{}", "[1]", "[{\"id\":1}]",
	    "[" ROW(1, 52007412, "yesterday", "x") "]", "[", "null"};
	struct found f;
	size_t rows, i;
	bool older;

	for (i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		assert_int_equal(
		    -1, page("comment", pages[i], "x", &f, &rows, &older));
	assert_int_equal(0, page("comment", "[]", "x", &f, &rows, &older));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(addresses_and_bodies),
	    cmocka_unit_test(only_a_positive_id_is_a_receipt),
	    cmocka_unit_test(what_counts_as_a_candidate),
	    cmocka_unit_test(a_line_without_content_is_no_candidate),
	    cmocka_unit_test(boosts_name_a_booster),
	    cmocka_unit_test(a_bad_page_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
