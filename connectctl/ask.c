#include "connectctl/ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/exit.h"
#include "common/json.h"
#include "common/text.h"

/* ---- saying it ----------------------------------------------------------- */

void
print_json(const json_t *value)
{
	(void)json_dumpf(value, stdout, JSON_COMPACT);
	(void)putchar('\n');
}

static const struct {
	int code;
	const char *word;
} error_words[] = {
    {EXIT_USAGE, "usage"},
    {EXIT_NOT_RUNNING, "not_running"},
    {EXIT_REFUSED, "refused"},
};

static const char *
error_word(int code)
{
	size_t i;

	for (i = 0; i < sizeof(error_words) / sizeof(error_words[0]); i++) {
		if (error_words[i].code == code)
			return error_words[i].word;
	}
	return "failed";
}

/* An error of our own, in the shape of the connector's. Returns CODE. */
int
fail(const struct wish *w, int code, const char *text)
{
	json_t *error;

	if (!w->json) {
		(void)fprintf(stderr, "connectctl: %s\n", text);
		if (code == EXIT_USAGE)
			(void)fputs(
			    "connectctl --help lists the commands\n", stderr);
		return code;
	}
	error = json_pack("{s:b,s:s,s:s,s:i}", "ok", 0, "error",
	    error_word(code), "text", text, "code", code);
	print_json(error);
	json_decref(error);
	return code;
}

static const struct {
	const char *word;
	int code;
} error_codes[] = {
    {"usage", EXIT_USAGE},
    {"refused", EXIT_REFUSED},
    {"busy", EXIT_BUSY},
    {"unavailable", EXIT_NOT_RUNNING},
    {"not_found", EXIT_FAILED},
    {"failed", EXIT_FAILED},
};

static int
error_code(const char *word)
{
	size_t i;

	for (i = 0; i < sizeof(error_codes) / sizeof(error_codes[0]); i++) {
		if (strcmp(word, error_codes[i].word) == 0)
			return error_codes[i].code;
	}
	return EXIT_FAILED;
}

/* The connector refused: its words, our code. */
int
fail_answer(const struct wish *w, json_t *answer)
{
	const char *word = json_string_value(json_object_get(answer, "error"));
	const json_t *text = json_object_get(answer, "text");
	int code = error_code(word == NULL ? "failed" : word);
	char *line;
	size_t len;

	if (w->json) {
		(void)json_object_set_new(answer, "code", json_integer(code));
		print_json(answer);
		return code;
	}
	line = text_single_line(
	    json_is_string(text) ? json_string_value(text) : "no reason given",
	    json_is_string(text) ? json_string_length(text) : 15, &len);
	(void)fprintf(stderr, "connectctl: %s\n", line);
	free(line);
	return code;
}

/* What the ledger's file does not hold, in the connector's words. */
int
fail_no_event(const struct wish *w)
{
	char text[64];
	json_t *answer;
	int code;

	(void)snprintf(text, sizeof(text), "no event %s", w->argument);
	answer = json_pack(
	    "{s:b,s:s,s:s}", "ok", 0, "error", "not_found", "text", text);
	code = fail_answer(w, answer);
	json_decref(answer);
	return code;
}

/* ---- asking -------------------------------------------------------------- */

json_t *
line_read(struct connection *c, struct error *e)
{
	const struct json_rules rules = {.max_bytes = (size_t)16 * 1024 * 1024,
	    .max_depth = 64,
	    .max_members = 1000000};
	const char *line;
	json_t *value;
	size_t len;

	line = connection_line(c, &len, e);
	if (line == NULL) {
		if (e->text[0] == '\0')
			(void)error_set(e, "the connector ended");
		e->code = EXIT_NOT_RUNNING;
		return NULL;
	}
	value = json_read(line, len, &rules, e);
	if (value == NULL)
		e->code = EXIT_FAILED;
	return value;
}

json_t *
answer_read(struct connection *c, struct error *e)
{
	json_t *line;

	while ((line = line_read(c, e)) != NULL &&
	    json_object_get(line, "ok") == NULL)
		json_decref(line);
	return line;
}

/*
 * One request (taken over) and its answer. *DATA is its data, to be released
 * by the caller, and EXIT_OK returned; else it was said what is wrong.
 */
int
ask(const struct wish *w, struct connection *c, json_t *request, json_t **data)
{
	json_t *answer = NULL;
	struct error e;
	int code = EXIT_OK;

	*data = NULL;
	if (connection_send(c, request, &e) == -1)
		code = fail(w, EXIT_NOT_RUNNING, e.text);
	else if ((answer = answer_read(c, &e)) == NULL)
		code = fail(w, e.code, e.text);
	else if (!json_is_true(json_object_get(answer, "ok")))
		code = fail_answer(w, answer);
	else
		*data = json_incref(json_object_get(answer, "data"));
	json_decref(answer);
	json_decref(request);
	return code;
}

void
print_data(json_t *data)
{
	json_t *all = json_pack("{s:b,s:O}", "ok", 1, "data", data);

	print_json(all);
	json_decref(all);
}

/* Connect, ask, hand the data over; for commands that are just that. */
int
ask_once(const struct wish *w, const struct paths *paths, json_t *request,
    json_t **data)
{
	struct connection *c;
	struct error e;
	int code;

	c = connection_open(paths, w->profile, &e);
	if (c == NULL) {
		json_decref(request);
		return fail(w, e.code, e.text);
	}
	code = ask(w, c, request, data);
	connection_close(c);
	return code;
}
