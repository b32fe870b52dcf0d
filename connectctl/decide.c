#include "connectctl/decide.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/random.h"
#include "connectctl/ask.h"

#define NONCE_BYTES 16
/* Some reads of Basecamp; what takes longer is not waited for. */
#define VERDICT_MS 10000
#define OVERDUE \
	"intake has not decided; `connectctl show EVENT` says how it stands"

static const char *
member(const json_t *data, const char *name)
{
	const char *text = json_string_value(json_object_get(data, name));

	return text == NULL ? "" : text;
}

static bool
is_true(const json_t *data, const char *name)
{
	return json_is_true(json_object_get(data, name));
}

static long long
number(const json_t *data, const char *name)
{
	return (long long)json_integer_value(json_object_get(data, name));
}

/* A request of COMMAND under a nonce; more members are the caller's to add. */
static json_t *
decision(const char *command)
{
	char nonce[2 * NONCE_BYTES + 1];

	random_hex(nonce, NONCE_BYTES);
	return json_pack("{s:s,s:s}", "command", command, "nonce", nonce);
}

static json_t *
event_decision(const struct wish *w, const char *command)
{
	json_t *request = decision(command);

	(void)json_object_set_new(request, "event",
	    json_integer((json_int_t)strtoll(w->argument, NULL, 10)));
	return request;
}

/* What the ledger need not be asked for (operator.md 3.3, 3.4). */
static void
complete(const struct wish *w, json_t *data)
{
	(void)json_object_set_new(data, "event_id",
	    json_integer((json_int_t)strtoll(w->argument, NULL, 10)));
	(void)json_object_set_new(data, "admitted",
	    json_boolean(strcmp(member(data, "state"), "admitted") == 0));
}

/*
 * As connection_open(). Only the ledger process writes decisions: where none
 * answers, what to do is to start the connector.
 */
static struct connection *
decider_open(const struct wish *w, const struct paths *paths, struct error *e)
{
	struct connection *c = connection_open(paths, w->profile, e);
	struct error why;

	if (c == NULL && e->code == EXIT_NOT_RUNNING) {
		why = *e;
		(void)error_set(e,
		    "%s; nothing is decided: start the connector (connectd run "
		    "--profile %s, or its service) and ask again",
		    why.text, w->profile);
		e->code = why.code;
	}
	return c;
}

/* As ask_once(). */
static int
decide_once(const struct wish *w, const struct paths *paths, json_t *request,
    json_t **data)
{
	struct error e;
	struct connection *c = decider_open(w, paths, &e);
	int code;

	if (c == NULL) {
		json_decref(request);
		return fail(w, e.code, e.text);
	}
	code = ask(w, c, request, data);
	connection_close(c);
	return code;
}

/* ---- redispatch ---------------------------------------------------------- */

static void
say_redispatched(const struct wish *w, const json_t *data)
{
	const char *attempt = member(data, "attempt_id");

	if (is_true(data, "pending"))
		(void)printf("event %s runs again when task %lld has ended",
		    w->argument, number(data, "superseded_task_id"));
	else if (is_true(data, "rerun"))
		(void)printf("event %s is decided anew", w->argument);
	else
		(void)printf(
		    "event %s is %s", w->argument, member(data, "state"));
	if (is_true(data, "held"))
		(void)fputs(
		    "; a hold stands: nothing starts before its release",
		    stdout);
	(void)putchar('\n');
	if (*attempt != '\0')
		(void)printf("%s is being ended\n", attempt);
}

/*
 * The worker of the task that was taken away: how it ended, or did not, or why
 * nobody says. The decision stands, so nothing of this is a failure.
 */
static void
say_worker(const struct wish *w, const json_t *decided, const json_t *worker)
{
	const char *attempt = member(decided, "attempt_id");
	const char *note = member(worker, "note");
	json_t *data;

	if (!w->json) {
		(void)printf("%s is %s%s%s\n", attempt,
		    *member(worker, "state") == '\0' ? "not heard of"
						     : member(worker, "state"),
		    *note == '\0' ? "" : ": ", note);
		return;
	}
	data = json_pack("{s:{s:s,s:O},s:O?,s:O?,s:O?}", "worker", "attempt_id",
	    attempt, "task_id", json_object_get(decided, "superseded_task_id"),
	    "worker_state", json_object_get(worker, "state"), "worker_signaled",
	    json_object_get(worker, "signaled"), "worker_note",
	    json_object_get(worker, "note"));
	print_data(data);
	json_decref(data);
}

static void
await_worker(const struct wish *w, struct connection *c, const json_t *decided)
{
	struct error e = {0, ""};
	json_t *answer = answer_read(c, &e), *lost;

	if (answer != NULL) {
		say_worker(w, decided,
		    json_object_get(json_object_get(answer, "data"), "worker"));
		json_decref(answer);
		return;
	}
	lost = json_pack("{s:s}", "note", e.text);
	say_worker(w, decided, lost);
	json_decref(lost);
}

/*
 * What became of it, or why that is not known here: intake decides it however
 * long it takes. The decision stands, so nothing of this is a failure.
 */
static void
say_verdict(const struct wish *w, const char *verdict, const char *reason,
    const char *skipped)
{
	json_t *data = json_pack("{s:s?,s:s?,s:s?}", "verdict", verdict,
	    "verdict_reason", reason, "rerun_skipped", skipped);

	if (w->json)
		print_data(data);
	else if (skipped != NULL)
		(void)printf("no verdict yet: %s\n", skipped);
	else
		(void)printf("event %s is %s%s%s%s\n", w->argument, verdict,
		    reason == NULL ? "" : " (", reason == NULL ? "" : reason,
		    reason == NULL ? "" : ")");
	json_decref(data);
}

/* Is it the transition of EVENT that we wait for? */
static bool
is_verdict(const json_t *line, json_int_t event)
{
	return strcmp(member(line, "type"), "event") == 0 &&
	    json_integer_value(json_object_get(line, "event_id")) == event;
}

/* Transitions come in the order of their commits, the decision's before. */
static void
await_verdict(const struct wish *w, struct connection *c)
{
	int64_t until = clock_monotonic_ms() + VERDICT_MS;
	json_int_t event = strtoll(w->argument, NULL, 10);
	bool is_told = false;
	struct error e;
	json_t *line;

	while (!is_told && connection_wait(c, until)) {
		line = line_read(c, &e);
		if (line == NULL) {
			say_verdict(w, NULL, NULL, e.text);
			return;
		}
		is_told = is_verdict(line, event);
		if (is_told)
			say_verdict(w, member(line, "state"),
			    json_string_value(json_object_get(line, "reason")),
			    NULL);
		json_decref(line);
	}
	if (!is_told)
		say_verdict(w, NULL, NULL, OVERDUE);
}

int
run_redispatch(const struct wish *w, const struct paths *paths)
{
	json_t *request = event_decision(w, "redispatch"), *data;
	struct connection *c;
	struct error e;
	int code;

	(void)json_object_set_new(request, "follow", json_true());
	c = decider_open(w, paths, &e);
	if (c == NULL) {
		json_decref(request);
		return fail(w, e.code, e.text);
	}
	code = ask(w, c, request, &data);
	if (code == EXIT_OK) {
		complete(w, data);
		if (w->json)
			print_data(data);
		else
			say_redispatched(w, data);
		(void)fflush(stdout);
		if (*member(data, "attempt_id") != '\0')
			await_worker(w, c, data);
		else if (is_true(data, "rerun"))
			await_verdict(w, c);
		json_decref(data);
	}
	connection_close(c);
	return code;
}

/* ---- discard, resolve ---------------------------------------------------- */

int
run_discard(const struct wish *w, const struct paths *paths)
{
	json_t *data;
	int code = decide_once(w, paths, event_decision(w, "discard"), &data);

	if (code != EXIT_OK)
		return code;
	complete(w, data);
	if (w->json)
		print_data(data);
	else
		(void)printf("event %s is discarded%s\n", w->argument,
		    is_true(data, "already") ? " already" : "");
	json_decref(data);
	return EXIT_OK;
}

/* "sent POSTED_ID", "abandon" or "resend" behind the message's number. */
static int
resolution_read(const struct wish *w, json_t *request)
{
	const char *word = w->more[0];
	const char *id = word == NULL ? NULL : w->more[1];
	bool is_sent = word != NULL && strcmp(word, "sent") == 0;
	int64_t receipt = 0;

	if (word == NULL || is_sent != (id != NULL) ||
	    (!is_sent && strcmp(word, "abandon") != 0 &&
		strcmp(word, "resend") != 0) ||
	    (is_sent && number_read(id, 1, INT64_MAX, &receipt) == -1))
		return -1;
	(void)json_object_set_new(request, "intent",
	    json_integer((json_int_t)strtoll(w->argument, NULL, 10)));
	(void)json_object_set_new(request, "resolution", json_string(word));
	if (is_sent)
		(void)json_object_set_new(
		    request, "receipt", json_integer(receipt));
	return 0;
}

int
run_resolve(const struct wish *w, const struct paths *paths)
{
	json_t *request = decision("resolve"), *data;
	int code;

	if (resolution_read(w, request) == -1) {
		json_decref(request);
		return fail(w, EXIT_USAGE,
		    "resolve: MESSAGE sent POSTED_ID, MESSAGE abandon or "
		    "MESSAGE resend");
	}
	code = decide_once(w, paths, request, &data);
	if (code != EXIT_OK)
		return code;
	if (w->json)
		print_data(data);
	else
		(void)printf(
		    "message %s is %s\n", w->argument, member(data, "state"));
	json_decref(data);
	return EXIT_OK;
}

/* ---- settle -------------------------------------------------------------- */

int
run_settle(const struct wish *w, const struct paths *paths)
{
	json_t *request = decision("settle"), *data;
	int code;

	(void)json_object_set_new(request, "attempt", json_string(w->argument));
	(void)json_object_set_new(request, "gone", json_true());
	code = decide_once(w, paths, request, &data);
	if (code != EXIT_OK)
		return code;
	if (w->json)
		print_data(data);
	else
		(void)printf("%s is settled as lost; %lld of its events stay "
			     "unknown\n",
		    w->argument, number(data, "unknown"));
	json_decref(data);
	return EXIT_OK;
}
