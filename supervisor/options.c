#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/options.h"

const char options_usage[] =
    "usage: connectd run -P|--profile PROFILE [--project ID[,ID]...]...\n"
    "           [--since EVENT_ID] [--driver claude|codex|acp] [--insecure]\n"
    "       connectd --version\n"
    "       connectd --help\n";

static const char *const drivers[] = {"claude", "codex", "acp"};

/* Decimal digits only, within [least, INT64_MAX]. */
static int
number_read(const char *text, int64_t least, int64_t *out)
{
	char *end;
	long long n;

	if (text[0] < '0' || text[0] > '9')
		return -1;
	errno = 0;
	n = strtoll(text, &end, 10);
	if (errno != 0 || *end != '\0' || n < least)
		return -1;
	*out = n;
	return 0;
}

static int
profile_take(struct options *o, const char *value, struct error *e)
{
	if (!path_profile_ok(value))
		return error_set(e,
		    "--profile: \"%s\" is no profile's name (letters, digits, "
		    "'-' and '_', at most 64)",
		    log_safe(value));
	free(o->profile);
	o->profile = xstrdup(value);
	return 0;
}

static int
project_take(struct options *o, const char *value, struct error *e)
{
	char *list = xstrdup(value), *rest = list, *word;
	int64_t id;
	int rc = 0;

	while (rc == 0 && (word = strsep(&rest, ",")) != NULL) {
		if (number_read(word, 1, &id) == 0)
			config_ids_add(&o->projects, id);
		else
			rc = error_set(e, "--project: \"%s\" is no project id",
			    log_safe(word));
	}
	free(list);
	return rc;
}

static int
since_take(struct options *o, const char *value, struct error *e)
{
	if (number_read(value, 0, &o->since) == 0)
		return 0;
	return error_set(e, "--since: \"%s\" is no event id", log_safe(value));
}

static int
driver_take(struct options *o, const char *value, struct error *e)
{
	size_t i;

	for (i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		if (strcmp(value, drivers[i]) != 0)
			continue;
		free(o->driver);
		o->driver = xstrdup(value);
		return 0;
	}
	return error_set(e, "--driver: \"%s\" is none of claude, codex, acp",
	    log_safe(value));
}

static int
insecure_take(struct options *o, const char *value, struct error *e)
{
	(void)value;
	(void)e;
	o->insecure = true;
	return 0;
}

static int
hold_refuse(struct options *o, const char *value, struct error *e)
{
	(void)o;
	(void)value;
	return error_set(e, "--hold: not in this version");
}

static int
shadow_refuse(struct options *o, const char *value, struct error *e)
{
	(void)o;
	(void)value;
	return error_set(e, "--shadow: not in this version");
}

static const struct option long_options[] = {
    {"profile", required_argument, NULL, 0},
    {"project", required_argument, NULL, 0},
    {"since", required_argument, NULL, 0},
    {"driver", required_argument, NULL, 0},
    {"insecure", no_argument, NULL, 0},
    {"hold", no_argument, NULL, 0},
    {"shadow", no_argument, NULL, 0},
    {NULL, 0, NULL, 0},
};

/* What takes the value of each; in the order of long_options. */
static int (*const takers[])(
    struct options *o, const char *value, struct error *e) = {
    profile_take,
    project_take,
    since_take,
    driver_take,
    insecure_take,
    hold_refuse,
    shadow_refuse,
};

_Static_assert(sizeof(takers) / sizeof(takers[0]) + 1 ==
	sizeof(long_options) / sizeof(long_options[0]),
    "every option has its taker");

/* The words after `run`. ARGV[0] is "run". */
static int
run_options_read(
    int argc, char *const argv[], struct options *o, struct error *e)
{
	int c, index = -1;

	opterr = 0;
	optind = 0; /* getopt begins anew, also when a test calls twice */
	while (
	    (c = getopt_long(argc, argv, "+:P:", long_options, &index)) != -1) {
		if (c == 'P')
			index = 0;
		else if (c == ':')
			return error_set(
			    e, "%s: needs a value", log_safe(argv[optind - 1]));
		else if (c != 0)
			return error_set(
			    e, "%s: no such flag", log_safe(argv[optind - 1]));
		if (takers[index](o, optarg, e) == -1)
			return -1;
	}
	if (optind < argc)
		return error_set(e,
		    "\"%s\": connectd run takes no words "
		    "without a flag",
		    log_safe(argv[optind]));
	if (o->profile == NULL)
		return error_set(e,
		    "--profile: it must be named; "
		    "`connectctl` and its files go by it");
	return 0;
}

enum options_what
options_read(int argc, char *const argv[], struct options *o, struct error *e)
{
	int i;

	memset(o, 0, sizeof(*o));
	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0)
			return OPTIONS_HELP;
	}
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return OPTIONS_VERSION;
	if (argc < 2)
		(void)error_set(e, "no command; `connectd run` is one");
	else if (strcmp(argv[1], "run") != 0)
		(void)error_set(
		    e, "\"%s\": no such command", log_safe(argv[1]));
	else if (run_options_read(argc - 1, argv + 1, o, e) == 0)
		return OPTIONS_RUN;
	options_free(o);
	return OPTIONS_WRONG;
}

void
options_free(struct options *o)
{
	free(o->profile);
	free(o->driver);
	free(o->projects.list);
	memset(o, 0, sizeof(*o));
}
