/*
 * Every text that a request may carry, with a word that means nothing: the
 * ledger takes it as text, or refuses it in words of its own, before a CHECK
 * or a trigger of the tables does in SQLite's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/repeats.h"

#define WORD "zounds"

/* One that has to have one length is an id, a stamp or a hash, and no word. */
static bool
is_a_text(const struct msg_field *field)
{
	return (field->kind == FIELD_STR && field->least != field->most) ||
	    field->kind == FIELD_LARGE;
}

static void
word_put(struct msg *m, const struct msg_field *field)
{
	void *at = (char *)m + field->offset;

	if (field->kind == FIELD_STR)
		*(const char **)at = WORD;
	else
		*(struct blob *)at = (struct blob){WORD, strlen(WORD)};
}

/* A failed statement is told with its name in front. */
static bool
is_of_a_statement(const char *text, const char *message)
{
	size_t len;
	int id;

	if (strstr(text, "constraint") != NULL)
		return true;
	for (id = 0; id < STMT_COUNT; id++) {
		len = strlen(sql_name(id));
		if (strcmp(sql_name(id), message) != 0 &&
		    strncmp(text, sql_name(id), len) == 0 && text[len] == ':')
			return true;
	}
	return false;
}

static void
answer_check(const struct msg *m, const struct msg_field *field,
    const struct msg *reply, bool is_word)
{
	const char *message = msg_name(m->type);

	if (reply->type != MSG_FAILED) {
		if (is_word)
			fail_msg("%s, %s: taken", message, field->name);
		return;
	}
	if (strcmp(reply->failed.reason, "unavailable") == 0 ||
	    is_of_a_statement(reply->failed.text, message))
		fail_msg(
		    "%s, %s: %s", message, field->name, reply->failed.text);
}

static void
word_ask(const struct repeat *r, const struct msg_field *field, bool is_word)
{
	struct fixture *f;
	void *state;
	struct msg m;

	(void)fixture_setup(&state);
	f = state;
	r->before(f);
	m = repeat_request(r);
	word_put(&m, field);
	answer_check(
	    &m, field, fixture_ask(f, &m, r->from, repeat_attempt(r)), is_word);
	(void)fixture_teardown(&state);
}

/* Those of which only some words are known. */
static const struct word {
	enum msg_type type;
	const char *field;
} words[] = {
    {MSG_RECORD, "lane"},
    {MSG_GAP, "class"},
    {MSG_GAP, "entry_class"},
    {MSG_VERDICT, "state"},
    {MSG_HOLD, "cause"},
    {MSG_RESOLVE, "resolution"},
    {MSG_END, "stop_reason"},
    {MSG_COMPLETE_DISPATCH, "outcome"},
    {MSG_POST, "kind"},
};
#define WORDS (sizeof(words) / sizeof(words[0]))

/* Its place in the list; WORDS: whatever it says is taken as it is. */
static size_t
word_of(enum msg_type type, const struct msg_field *field)
{
	size_t i;

	for (i = 0; i < WORDS; i++) {
		if (words[i].type == type &&
		    strcmp(words[i].field, field->name) == 0)
			break;
	}
	return i;
}

/* The table of repeats has every request that changes something. */
static void
no_word_is_judged_by_the_tables(void **state)
{
	bool tried[WORDS + 1] = {false};
	const struct msg_info *info;
	size_t i, k, word;

	for (i = 0; i < repeat_count; i++) {
		info = msg_info(repeats[i].m.type);
		for (k = 0; k < info->field_count; k++) {
			if (!is_a_text(&info->fields[k]))
				continue;
			word = word_of(repeats[i].m.type, &info->fields[k]);
			word_ask(&repeats[i], &info->fields[k], word != WORDS);
			tried[word] = true;
		}
	}
	for (word = 0; word < WORDS; word++)
		assert_true(tried[word]);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(no_word_is_judged_by_the_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
