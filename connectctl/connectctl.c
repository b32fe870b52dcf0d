/*
 * The operator's tool: a thin client of the control socket. It decides
 * nothing; who may do what is the supervisor's to say.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/build_id.h"
#include "common/exit.h"
#include "common/json.h"
#include "common/log.h"
#include "common/paths.h"
#include "common/text.h"
#include "connectctl/ask.h"
#include "connectctl/decide.h"
#include "connectctl/offline.h"
#include "connectctl/profile.h"
#include "connectctl/text.h"
#include "connectctl/token.h"
#include "connectctl/words.h"
#include "connectctl/workers.h"

static int run_status(const struct wish *w, const struct paths *paths);
static int run_events(const struct wish *w, const struct paths *paths);
static int run_show(const struct wish *w, const struct paths *paths);
static int run_stop(const struct wish *w, const struct paths *paths);
static int run_restart(const struct wish *w, const struct paths *paths);
static int run_reload(const struct wish *w, const struct paths *paths);
static int run_token(const struct wish *w, const struct paths *paths);
static int run_version(const struct wish *w, const struct paths *paths);

static const struct command commands[] = {
    {"status", NULL, 1, 0, "what runs, what waits, what needs a person", true,
	false, false, run_status},
    {"events", NULL, 1, FLAG_FOLLOW | FLAG_COUNT,
	"the latest records; -f: and each transition from now on", true, false,
	false, run_events},
    {"show", "EVENT", 1, 0, "all that is known of one event", true, true, false,
	run_show},
    {"redispatch", "EVENT", 1, 0,
	"run an event again that failed, is unknown, blocked or held", true,
	true, true, run_redispatch},
    {"discard", "EVENT", 1, 0,
	"close an event that is held, blocked or unknown", true, true, false,
	run_discard},
    {"resolve", "MESSAGE sent POSTED_ID | abandon | resend", 3, 0,
	"say what became of a message that may have been posted", true, true,
	false, run_resolve},
    {"settle", "ATTEMPT", 1, FLAG_GONE,
	"settle a held attempt: you have looked, and nothing of it runs", true,
	false, false, run_settle},
    {"stop", NULL, 1, 0, "stop in order, and wait until all is gone", true,
	false, false, run_stop},
    {"restart", "CHILD", 1, 0,
	"restart ledger, dispatcher, outbox or intake; wait until it is ready",
	true, false, false, run_restart},
    {"reload", NULL, 1, 0, "read connect.json and credentials.json again", true,
	false, false, run_reload},
    {"token", "ATTEMPT", 1, FLAG_FD,
	"take a running task over: its new token goes to descriptor N", true,
	false, false, run_token},
    {"version", NULL, 1, 0, "of connectctl or, with -P, of the connector",
	false, false, false, run_version},
    {NULL, NULL, 0, 0, NULL, false, false, false, NULL},
};

/* ---- the commands -------------------------------------------------------- */

static bool
needs_a_person(const json_t *child)
{
	return json_is_true(json_object_get(child, "failing")) ||
	    json_object_get(json_object_get(child, "values"), "trouble") !=
	    NULL;
}

static bool
is_well(const json_t *data)
{
	const json_t *children = json_object_get(data, "children");
	const json_t *config =
	    json_object_get(json_object_get(data, "supervisor"), "config");
	size_t i;

	for (i = 0; i < json_array_size(children); i++) {
		if (needs_a_person(json_array_get(children, i)))
			return false;
	}
	return !json_is_true(json_object_get(config, "unreadable")) &&
	    json_array_size(json_object_get(data, "silent")) == 0;
}

/*
 * From the file, when nothing runs; there is nothing to follow then. What is
 * missing for that, and why it was looked for, is said alike of any command.
 */
static int
ask_offline(const struct wish *w, const struct paths *paths,
    const char *const words[], const struct error *why, json_t **data)
{
	struct error e = {0, ""}, both;

	if (why->code != EXIT_NOT_RUNNING || w->follow)
		return fail(w, why->code, why->text);
	*data = offline_ask(paths, words, &e);
	if (*data == NULL) {
		(void)error_set(&both, "%s; %s", why->text, e.text);
		return fail(w, e.code, both.text);
	}
	return json_is_null(*data) ? fail_no_event(w) : EXIT_OK;
}

/* The connector is not there, but its ledger may be. */
static int
status_offline(
    const struct wish *w, const struct paths *paths, const struct error *why)
{
	static const char *const words[] = {"status", NULL};
	json_t *data, *status;
	int code = ask_offline(w, paths, words, why, &status);

	if (code != EXIT_OK)
		return code;
	workers_tell(status);
	data = json_pack("{s:s,s:b,s:o,s:n,s:[],s:[],s:o}", "profile",
	    w->profile, "shadow", 0, "lock_holder", offline_lock_holder(paths),
	    "supervisor", "children", "silent", "status", status);
	if (w->json)
		print_data(data);
	else
		text_status(data);
	json_decref(data);
	return EXIT_NOT_RUNNING;
}

static int
run_status(const struct wish *w, const struct paths *paths)
{
	struct connection *c;
	struct error e;
	json_t *data;
	int code;

	c = connection_open(paths, w->profile, &e);
	if (c == NULL)
		return status_offline(w, paths, &e);
	code = ask(w, c, json_pack("{s:s}", "command", "status"), &data);
	connection_close(c);
	if (code != EXIT_OK)
		return code;
	workers_tell(json_object_get(data, "status"));
	if (w->json)
		print_data(data);
	else
		text_status(data);
	code = is_well(data) ? EXIT_OK : EXIT_FAILED;
	json_decref(data);
	return code;
}

static void
print_events(const struct wish *w, json_t *data)
{
	if (w->json)
		print_data(data);
	else
		text_events(data);
	(void)fflush(stdout);
}

/* Until the connector ends or drops us, or we are ended. */
static int
follow(const struct wish *w, struct connection *c)
{
	struct error e;
	json_t *line;

	while ((line = line_read(c, &e)) != NULL) {
		if (w->json)
			print_json(line);
		else
			text_line(line);
		(void)fflush(stdout);
		json_decref(line);
	}
	(void)fprintf(stderr, "connectctl: %s\n", e.text);
	return e.code;
}

static int
run_events(const struct wish *w, const struct paths *paths)
{
	const char *words[] = {"events", NULL, NULL};
	struct connection *c;
	char count[24];
	struct error e;
	json_t *data;
	int code;

	c = connection_open(paths, w->profile, &e);
	(void)snprintf(count, sizeof(count), "%lld", (long long)w->count);
	words[1] = count;
	if (c == NULL)
		code = ask_offline(w, paths, words, &e, &data);
	else
		code = ask(w, c,
		    json_pack("{s:s,s:I,s:b}", "command", "events", "count",
			(json_int_t)w->count, "follow", w->follow),
		    &data);
	if (code == EXIT_OK) {
		print_events(w, data);
		json_decref(data);
		if (w->follow)
			code = follow(w, c);
	}
	connection_close(c);
	return code;
}

static int
run_show(const struct wish *w, const struct paths *paths)
{
	const char *words[] = {"show", w->argument, NULL};
	struct connection *c;
	struct error e;
	json_t *data;
	int code;

	c = connection_open(paths, w->profile, &e);
	if (c == NULL)
		code = ask_offline(w, paths, words, &e, &data);
	else
		code = ask(w, c,
		    json_pack("{s:s,s:I}", "command", "show", "event",
			(json_int_t)strtoll(w->argument, NULL, 10)),
		    &data);
	if (code == EXIT_OK) {
		if (w->json)
			print_data(data);
		else
			text_members(data, 0);
		json_decref(data);
	}
	connection_close(c);
	return code;
}

/* The connection ends with the connector. */
static int
run_stop(const struct wish *w, const struct paths *paths)
{
	struct connection *c;
	struct error e;
	json_t *data;
	size_t len;
	int code;

	c = connection_open(paths, w->profile, &e);
	if (c == NULL)
		return fail(w, e.code, e.text);
	code = ask(w, c, json_pack("{s:s}", "command", "stop"), &data);
	if (code == EXIT_OK) {
		while (connection_line(c, &len, &e) != NULL)
			;
		if (w->json)
			print_data(data);
		else
			(void)puts("stopped");
		json_decref(data);
	}
	connection_close(c);
	return code;
}

static int
run_restart(const struct wish *w, const struct paths *paths)
{
	json_t *data;
	int code = ask_once(w, paths,
	    json_pack("{s:s,s:s}", "command", "restart", "role", w->argument),
	    &data);

	if (code != EXIT_OK)
		return code;
	if (w->json)
		print_data(data);
	else
		(void)printf("%s is ready, pid %lld\n", w->argument,
		    (long long)json_integer_value(
			json_object_get(data, "pid")));
	json_decref(data);
	return EXIT_OK;
}

static int
run_reload(const struct wish *w, const struct paths *paths)
{
	json_t *data;
	int code =
	    ask_once(w, paths, json_pack("{s:s}", "command", "reload"), &data);

	if (code != EXIT_OK)
		return code;
	if (w->json)
		print_data(data);
	else
		(void)printf("connect.json is in force, generation %lld\n",
		    (long long)json_integer_value(
			json_object_get(data, "generation")));
	json_decref(data);
	return EXIT_OK;
}

static int
run_token(const struct wish *w, const struct paths *paths)
{
	struct connection *c;
	struct error e;
	json_t *data;
	int code, to = (int)w->fd;

	if (token_fd_check(to, &e) == -1)
		return fail(w, EXIT_USAGE, e.text);
	c = connection_open(paths, w->profile, &e);
	if (c == NULL)
		return fail(w, e.code, e.text);
	code = ask(w, c,
	    json_pack("{s:s,s:s}", "command", "token", "attempt", w->argument),
	    &data);
	if (code == EXIT_OK &&
	    token_hand_over(connection_take_fd(c), to, &e) == -1)
		code = fail(w, EXIT_FAILED, e.text);
	else if (code == EXIT_OK && w->json)
		print_data(data);
	else if (code == EXIT_OK)
		(void)printf("task %lld is taken over\n",
		    (long long)json_integer_value(
			json_object_get(data, "task_id")));
	json_decref(data);
	connection_close(c);
	return code;
}

/* Without a profile our own; with one, the running connector's as well. */
static int
run_version(const struct wish *w, const struct paths *paths)
{
	json_t *data = NULL;
	int code;

	if (w->profile == NULL) {
		data = json_pack("{s:s,s:s}", "version", CONNECTD_VERSION,
		    "build", build_id);
		code = EXIT_OK;
	} else {
		code = ask_once(
		    w, paths, json_pack("{s:s}", "command", "version"), &data);
	}
	if (code != EXIT_OK)
		return code;
	if (w->json)
		print_data(data);
	else
		(void)printf("connectctl %s\n", build_id);
	if (!w->json && w->profile != NULL)
		text_members(data, 0);
	json_decref(data);
	return EXIT_OK;
}

/* ---- the whole ----------------------------------------------------------- */

/* As `connectd run` refuses it; its value is nobody's business. */
static bool
token_is_in_the_way(const struct wish *w)
{
	return w->command->refuses_token && getenv("BASECAMP_TOKEN") != NULL;
}

/*
 * What was closed would be the number of the next socket, and what we print
 * would go to the connector. Opened the wrong way round: its use fails.
 */
static void
standard_streams_hold(void)
{
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) == -1 &&
		    open("/dev/null",
			fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			fatal("/dev/null");
	}
	(void)signal(SIGPIPE, SIG_IGN);
}

/* What the command did is done; that not all of it was said is said. */
static bool
output_is_whole(int code)
{
	if (fflush(stdout) != EOF && !ferror(stdout))
		return true;
	log_warnx("standard output cannot be written%s",
	    code == EXIT_OK ? ": what was asked for is done" : "");
	return false;
}

int
main(int argc, char *argv[])
{
	struct wish w;
	struct paths paths = {0};
	struct error e;
	char *only = NULL;
	int code;

	standard_streams_hold();
	log_init("connectctl", LOG_LEVEL_INFO);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		(void)printf("connectctl %s\n", build_id);
		return EXIT_OK;
	}
	if (words_read(argc, argv, commands, &w, &e) == -1)
		return fail(&w, EXIT_USAGE, e.text);
	if (w.help) {
		words_usage(commands, stdout);
		return EXIT_OK;
	}
	if (token_is_in_the_way(&w))
		return fail(&w, EXIT_USAGE,
		    "BASECAMP_TOKEN is in the environment: the connector acts "
		    "with its agent's own credential; unset it");
	if (w.profile == NULL && w.command->needs_profile) {
		if (profile_find(&only, &e) == -1)
			return fail(&w, e.code, e.text);
		w.profile = only;
	}
	if (w.profile != NULL && path_resolve(w.profile, &paths, &e) == -1)
		return fail(&w, EXIT_CONFIG, e.text);
	code = w.command->run(&w, &paths);
	path_free(&paths);
	free(only);
	return output_is_whole(code) ? code : EXIT_FAILED;
}
