/* The text of `status`, in the order of operator.md 3.1. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "connectctl/text.h"

#define LABEL "%-15s"
/* As many as fit in one statement: strings live until the next line. */
#define TEXTS 8

/* ---- members, whatever they are ------------------------------------------ */

/* A member as one printable line, "-" for what is not there. */
static const char *
text_of(const json_t *object, const char *name)
{
	static char texts[TEXTS][512];
	static unsigned turn;
	char *out = texts[turn++ % TEXTS], *line;
	const json_t *value = json_object_get(object, name);
	size_t len;

	if (json_is_integer(value)) {
		(void)snprintf(out, sizeof(texts[0]), "%lld",
		    (long long)json_integer_value(value));
	} else if (json_is_string(value) && json_string_length(value) > 0) {
		line = text_single_line(
		    json_string_value(value), json_string_length(value), &len);
		(void)snprintf(out, sizeof(texts[0]), "%s", line);
		free(line);
	} else {
		(void)snprintf(out, sizeof(texts[0]), "-");
	}
	return out;
}

static bool
has_text(const json_t *object, const char *name)
{
	return json_string_length(json_object_get(object, name)) > 0;
}

static long long
number_of(const json_t *object, const char *name)
{
	return (long long)json_integer_value(json_object_get(object, name));
}

static bool
is_true(const json_t *object, const char *name)
{
	return json_is_true(json_object_get(object, name));
}

/* "3m12s", "450ms". */
static const char *
span_of(const json_t *object, const char *name)
{
	static char texts[TEXTS][32];
	static unsigned turn;
	char *out = texts[turn++ % TEXTS];
	long long ms = number_of(object, name), s = ms / 1000;

	if (ms < 1000)
		(void)snprintf(out, sizeof(texts[0]), "%lldms", ms);
	else if (s < 60)
		(void)snprintf(out, sizeof(texts[0]), "%llds", s);
	else if (s < 3600)
		(void)snprintf(
		    out, sizeof(texts[0]), "%lldm%llds", s / 60, s % 60);
	else
		(void)snprintf(
		    out, sizeof(texts[0]), "%lldh%lldm", s / 3600, s / 60 % 60);
	return out;
}

static const json_t *
element(const json_t *object, const char *list, size_t i)
{
	return json_array_get(json_object_get(object, list), i);
}

static size_t
count_of(const json_t *object, const char *list)
{
	return json_array_size(json_object_get(object, list));
}

/* ---- the supervisor's part ----------------------------------------------- */

static void
print_lock(const json_t *data)
{
	const json_t *holder = json_object_get(data, "lock_holder");
	const char *status =
	    json_string_value(json_object_get(holder, "pid_status"));

	(void)printf(LABEL, "lock file");
	if (status == NULL)
		(void)puts("nobody is noted");
	else if (strcmp(status, "present") == 0)
		(void)printf("pid %lld, since %s\n", number_of(holder, "pid"),
		    text_of(holder, "started_at"));
	else if (strcmp(status, "absent") == 0)
		(void)printf("pid %lld of %s is gone: left by a crash\n",
		    number_of(holder, "pid"), text_of(holder, "started_at"));
	else
		(void)printf("pid %lld of %s: it cannot be said whether it "
			     "runs\n",
		    number_of(holder, "pid"), text_of(holder, "started_at"));
}

static void
print_supervisor(const json_t *data)
{
	const json_t *s = json_object_get(data, "supervisor");
	const json_t *config = json_object_get(s, "config");

	(void)printf(LABEL, "connector");
	if (s == NULL || json_is_null(s)) {
		(void)puts("not running");
		return;
	}
	(void)printf("%s, pid %lld, up %s, build %s%s%s\n", text_of(s, "state"),
	    number_of(s, "pid"), span_of(s, "uptime_ms"), text_of(s, "build"),
	    is_true(s, "restart_pending")
		? "; another build is installed, a restart is pending"
		: "",
	    is_true(s, "insecure") ? "; --insecure" : "");
	(void)printf(LABEL "generation %lld, %lld route(s), driver %s, "
			   "confine %s, workers as %s\n",
	    "configuration", number_of(config, "generation"),
	    number_of(config, "routes"), text_of(config, "driver"),
	    text_of(config, "confine"), text_of(config, "worker_user"));
	if (is_true(config, "unreadable"))
		(void)printf(LABEL "unreadable, nothing new starts: %s\n", "",
		    text_of(config, "error"));
	(void)printf(LABEL "Landlock ABI %lld, cgroup %s\n", "this machine",
	    number_of(s, "landlock_abi"), text_of(s, "cgroup"));
}

static void
print_walls(const json_t *child)
{
	const json_t *walls = json_object_get(child, "walls");

	if (walls == NULL)
		return;
	(void)printf(", walls:%s%s%s",
	    is_true(walls, "seccomp") ? " seccomp" : " NO SECCOMP",
	    is_true(walls, "no_new_privs") ? "" : " NEW PRIVILEGES",
	    is_true(walls, "dumpable") ? " DUMPABLE" : "");
	if (number_of(walls, "landlock_abi") > 0)
		(void)printf(" landlock");
	else
		(void)printf(" NO LANDLOCK");
}

static void
print_child(const json_t *child)
{
	const char *name;
	json_t *value;

	(void)printf(
	    "  %-11s  %-10s", text_of(child, "role"), text_of(child, "state"));
	if (number_of(child, "pid") > 0)
		(void)printf("  pid %lld", number_of(child, "pid"));
	(void)printf("  for %s", span_of(child, "state_ms"));
	if (number_of(child, "restarts") > 0)
		(void)printf(", restarts %lld (%lld by its own fault)",
		    number_of(child, "restarts"),
		    number_of(child, "own_deaths"));
	if (json_object_get(child, "restart_in_ms") != NULL)
		(void)printf(", next in %s", span_of(child, "restart_in_ms"));
	print_walls(child);
	if (has_text(child, "attempt_id"))
		(void)printf(", %s", text_of(child, "attempt_id"));
	(void)putchar('\n');
	json_object_foreach (json_object_get(child, "values"), name, value) {
		(void)printf("    %s: ", name);
		text_scalar(value);
		(void)putchar('\n');
	}
	if (has_text(child, "last_words") &&
	    strcmp(text_of(child, "state"), "ready") != 0)
		(void)printf("    %s\n", text_of(child, "last_words"));
}

static void
print_children(const json_t *data)
{
	size_t i;

	if (count_of(data, "children") == 0)
		return;
	(void)puts("\nprocesses");
	for (i = 0; i < count_of(data, "children"); i++)
		print_child(element(data, "children", i));
	for (i = 0; i < count_of(data, "guests"); i++)
		(void)printf("  standalone mcpd, pid %lld, serves %s\n",
		    number_of(element(data, "guests", i), "pid"),
		    has_text(element(data, "guests", i), "attempt_id")
			? text_of(element(data, "guests", i), "attempt_id")
			: "nothing yet");
	for (i = 0; i < count_of(data, "silent"); i++)
		(void)printf("  the %s does not answer: what follows is "
			     "missing\n",
		    json_string_value(element(data, "silent", i)));
}

/* ---- the ledger's part --------------------------------------------------- */

static void
print_run(const json_t *status)
{
	const json_t *run = json_object_get(status, "connection");
	const json_t *hold = json_object_get(status, "hold");

	if (json_is_object(run))
		(void)printf(LABEL "%s, pid %lld, %s%s%s\n", "last run",
		    text_of(run, "state"), number_of(run, "pid"),
		    text_of(run, "changed_at"),
		    has_text(run, "detail") ? ": " : "",
		    has_text(run, "detail") ? text_of(run, "detail") : "");
	if (json_is_object(hold))
		(void)printf(LABEL "by %s since %s (%s, generation %lld): "
				   "nothing is dispatched\n",
		    "hold", text_of(hold, "held_by"), text_of(hold, "held_at"),
		    text_of(hold, "cause"), number_of(hold, "generation"));
	else
		(void)printf(LABEL "none\n", "hold");
}

static void
print_feed(const json_t *status)
{
	const json_t *one;
	size_t i;

	for (i = 0; i < count_of(status, "positions"); i++) {
		one = element(status, "positions", i);
		(void)printf(LABEL "%s, served up to %lld, %s\n", "feed",
		    is_true(one, "has_position") ? "at a position"
						 : "no position",
		    number_of(one, "last_poll_served_id"),
		    text_of(one, "updated_at"));
	}
	for (i = 0; i < count_of(status, "gaps"); i++) {
		one = element(status, "gaps", i);
		(void)printf(LABEL "%s at %s, after %lld\n", "gap",
		    text_of(one, "class"), text_of(one, "detected_at"),
		    number_of(one, "epoch_after_id"));
	}
	for (i = 0; i < count_of(status, "open_losses"); i++) {
		one = element(status, "open_losses", i);
		(void)printf(LABEL "%lld dropped at %s, %zu still missing\n",
		    "loss", number_of(one, "dropped"),
		    text_of(one, "detected_at"), count_of(one, "missing"));
	}
	if (number_of(status, "unrecovered_ids") > 0)
		(void)printf(LABEL "%lld event(s)\n", "unrecovered",
		    number_of(status, "unrecovered_ids"));
}

static void
print_queues(const json_t *status)
{
	static const char *const states[] = {
	    "seen", "admitted", "queued", "blocked", "dispatched", "held"};
	const json_t *queues = json_object_get(status, "queues");
	const char *reason;
	json_t *value;
	size_t i;

	(void)putchar('\n');
	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		(void)printf(
		    LABEL "%lld\n", states[i], number_of(queues, states[i]));
	json_object_foreach (json_object_get(status, "blocked"), reason, value)
		(void)printf(LABEL "%s %lld\n", "", reason,
		    (long long)json_integer_value(value));
	if (number_of(status, "review_tagged") +
		number_of(status, "authorized_blocked") +
		number_of(status, "redispatch_pending") >
	    0)
		(void)printf(LABEL "%lld to be looked at, %lld blocked though "
				   "authorized, %lld to run again\n",
		    "review", number_of(status, "review_tagged"),
		    number_of(status, "authorized_blocked"),
		    number_of(status, "redispatch_pending"));
}

static void
print_ids(const json_t *list)
{
	size_t i;

	for (i = 0; i < json_array_size(list); i++)
		(void)printf("%s%lld", i == 0 ? "" : ",",
		    (long long)json_integer_value(json_array_get(list, i)));
}

static void
print_tasks(const json_t *status)
{
	const json_t *one;
	size_t i;

	(void)printf(
	    "\n" LABEL "%zu\n", "live tasks", count_of(status, "live_tasks"));
	for (i = 0; i < count_of(status, "live_tasks"); i++) {
		one = element(status, "live_tasks", i);
		(void)printf("  task %lld, %s, %s, pid %s (%s), since %s, "
			     "events ",
		    number_of(one, "task_id"), text_of(one, "attempt_id"),
		    text_of(one, "state"), text_of(one, "pid"),
		    text_of(one, "worker"), text_of(one, "launched_at"));
		print_ids(json_object_get(one, "event_ids"));
		(void)putchar('\n');
	}
}

static void
print_doubts(const json_t *status)
{
	const json_t *one;
	size_t i;

	(void)printf(LABEL "%zu\n", "in doubt",
	    count_of(status, "indeterminate_intents"));
	for (i = 0; i < count_of(status, "indeterminate_intents"); i++) {
		one = element(status, "indeterminate_intents", i);
		(void)printf(
		    "  message %lld, %s for event %s, sent at %s: %s\n",
		    number_of(one, "id"), text_of(one, "kind"),
		    text_of(one, "event_id"), text_of(one, "sending_at"),
		    text_of(one, "note"));
	}
	(void)printf(
	    LABEL "%zu\n", "held records", count_of(status, "held_records"));
	for (i = 0; i < count_of(status, "held_records"); i++) {
		one = element(status, "held_records", i);
		(void)printf("  event %lld, %s, %s, %s\n",
		    number_of(one, "event_id"), text_of(one, "trigger"),
		    text_of(one, "recording_url"), text_of(one, "updated_at"));
	}
}

static void
print_dispatch(const json_t *one)
{
	const json_t *event;
	size_t i;

	(void)printf("  %s  task %lld  %s", text_of(one, "launched_at"),
	    number_of(one, "task_id"), text_of(one, "state"));
	if (has_text(one, "stop_reason"))
		(void)printf("  %s", text_of(one, "stop_reason"));
	for (i = 0; i < count_of(one, "events"); i++) {
		event = element(one, "events", i);
		(void)printf("  %lld:%s", number_of(event, "event_id"),
		    is_true(event, "withdrawn") ? "withdrawn"
			: has_text(event, "outcome")
			? text_of(event, "outcome")
			: text_of(event, "delivery"));
	}
	(void)putchar('\n');
}

static void
print_dispatches(const json_t *status)
{
	size_t i, count = count_of(status, "dispatches");

	(void)printf(
	    "\n" LABEL "%s\n", "last dispatches", count == 0 ? " none" : "");
	for (i = 0; i < count; i++)
		print_dispatch(element(status, "dispatches", i));
}

void
text_status(const json_t *data)
{
	const json_t *status = json_object_get(data, "status");

	(void)printf("connectd, profile \"%s\"%s\n", text_of(data, "profile"),
	    is_true(data, "shadow") ? " (shadow)" : "");
	print_lock(data);
	print_supervisor(data);
	if (json_is_object(status)) {
		print_run(status);
		print_feed(status);
	}
	print_children(data);
	if (!json_is_object(status))
		return;
	print_queues(status);
	print_tasks(status);
	print_doubts(status);
	print_dispatches(status);
}
