#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/role.h"
#include "common/sandbox.h"
#include "common/xmalloc.h"
#include "ledger/database.h"
#include "ledger/inspect.h"
#include "ledger/machine.h"
#include "ledger/promote.h"
#include "ledger/query.h"

#define EVENTS_MOST 1000

static const struct sandbox_profile inspect_profile = {
    .words = SANDBOX_STDIO | SANDBOX_RPATH,
    .dirs = {{"", SANDBOX_READ}},
};

static const char usage_text[] =
    "usage: connectd-ledger --print-schema\n"
    "       connectd-ledger --print-lifecycle\n"
    "       connectd-ledger [--insecure] --inspect DIR status\n"
    "       connectd-ledger [--insecure] --inspect DIR events [COUNT]\n"
    "       connectd-ledger [--insecure] --inspect DIR show EVENT\n"
    "       connectd-ledger [--insecure] --promote SHADOW_DIR DIR --by NAME\n";

static int
usage(void)
{
	(void)fputs(usage_text, stderr);
	return EXIT_USAGE;
}

/* What is asked, as a QUERY would carry it. */
struct question {
	bool insecure;
	const char *dir;
	const char *what;
	int64_t event_id;
	int64_t count;
};

/* A whole number from 1 to MOST; -1: it is none. */
static int64_t
number(const char *text, int64_t most)
{
	char *end;
	long long n;

	errno = 0;
	n = strtoll(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || n < 1 ||
	    n > most)
		return -1;
	return n;
}

static int
question_read(char **words, struct question *q)
{
	const char *argument;

	if (*words != NULL && strcmp(*words, "--insecure") == 0) {
		q->insecure = true;
		words++;
	}
	if (*words == NULL || strcmp(*words++, "--inspect") != 0 ||
	    (q->dir = *words++) == NULL || (q->what = *words++) == NULL)
		return -1;
	if ((argument = *words) != NULL && words[1] != NULL)
		return -1;
	if (strcmp(q->what, "show") == 0) {
		if (argument == NULL)
			return -1;
		q->event_id = number(argument, INT64_MAX);
		return q->event_id == -1 ? -1 : 0;
	}
	if (strcmp(q->what, "events") == 0 && argument != NULL) {
		q->count = number(argument, EVENTS_MOST);
		return q->count == -1 ? -1 : 0;
	}
	return argument != NULL ? -1 : 0;
}

static int
complain(enum exit_code code, const struct error *e)
{
	log_warnx("%s", e->text);
	return code;
}

static int
answer_question(struct ledger *l, const struct question *q)
{
	struct error e;
	char *json;

	switch (query_json(l, q->what, q->event_id, q->count, &json)) {
	case QUERY_OK:
		break;
	case QUERY_UNKNOWN:
		return usage();
	case QUERY_NO_RECORD:
		json = xstrdup("null");
		break;
	case QUERY_ERROR:
		return complain(EXIT_STORAGE, &l->error);
	}
	if (database_stands(l, q->dir, &e) == -1) {
		free(json);
		return complain(EXIT_STORAGE, &e);
	}
	(void)puts(json);
	free(json);
	if (fflush(stdout) == EOF) {
		log_warn("stdout");
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

int
inspect_process_init(struct error *e)
{
	role_seed();
	return database_process_init(e);
}

static int
inspect(const struct question *q)
{
	static const enum exit_code codes[] = {
	    [OPEN_OK] = EXIT_OK,
	    [OPEN_MISSING] = EXIT_NOT_RUNNING,
	    [OPEN_REFUSED] = EXIT_REFUSED,
	    [OPEN_FAILED] = EXIT_STORAGE,
	};
	struct sandbox_report walls;
	enum open_result result;
	struct error e = {0, ""};
	struct ledger l;
	int code;

	if (access(q->dir, F_OK) == -1) {
		log_warnx("no connector ledger in %s", log_safe(q->dir));
		return EXIT_NOT_RUNNING;
	}
	if (inspect_process_init(&e) == -1 ||
	    sandbox_enter(&inspect_profile, q->dir, q->insecure, &walls, &e) ==
		-1)
		return complain(EXIT_WALLS, &e);
	result = database_open_readonly(&l, q->dir, &e);
	if (result == OPEN_MISSING)
		(void)error_set(
		    &e, "no connector ledger in %s", log_safe(q->dir));
	if (result != OPEN_OK)
		return complain(codes[result], &e);
	code = answer_question(&l, q);
	database_close(&l);
	return code;
}

static int
schema_print(FILE *out)
{
	return fputs(ledger_schema, out) == EOF ? -1 : 0;
}

/* What is true of every ledger.db, and opens none. */
static int
print(int (*what)(FILE *out))
{
	return what(stdout) == -1 || fflush(stdout) == EOF ? EXIT_FAILED
							   : EXIT_OK;
}

/* --promote has words of its own. */
static int
promote_words(char *const *words)
{
	bool insecure = *words != NULL && strcmp(*words, "--insecure") == 0;
	int code = promote_main(words + insecure + 1, insecure);

	return code == EXIT_USAGE ? usage() : code;
}

static bool
is_promote(char *const *words)
{
	if (*words != NULL && strcmp(*words, "--insecure") == 0)
		words++;
	return *words != NULL && strcmp(*words, "--promote") == 0;
}

int
inspect_main(int argc, char **argv)
{
	struct question q = {0};

	log_init("connectd-ledger", LOG_LEVEL_INFO);
	if (argc == 2 && strcmp(argv[1], "--print-schema") == 0)
		return print(schema_print);
	if (argc == 2 && strcmp(argv[1], "--print-lifecycle") == 0)
		return print(machines_print);
	if (is_promote(argv + 1))
		return promote_words(argv + 1);
	if (question_read(argv + 1, &q) == -1)
		return usage();
	return inspect(&q);
}
