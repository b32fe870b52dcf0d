#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "connectctl/words.h"

#define EVENTS_NORMAL 20
#define EVENTS_MOST 1000
#define FD_LEAST 3

static const char *
flags_usage(unsigned flags)
{
	switch (flags) {
	case 0:
		return "";
	case FLAG_FD:
		return " --fd N";
	case FLAG_GONE:
		return " --gone";
	default:
		return " [-f] [-n COUNT]";
	}
}

void
words_usage(const struct command *commands, FILE *out)
{
	const struct command *c;

	(void)fputs(
	    "usage: connectctl [-P|--profile PROFILE] [--json] COMMAND\n"
	    "Without -P: of the only profile that there is.\n",
	    out);
	for (c = commands; c->name != NULL; c++)
		(void)fprintf(out, "  %s%s%s%s\n      %s\n", c->name,
		    c->argument == NULL ? "" : " ",
		    c->argument == NULL ? "" : c->argument,
		    flags_usage(c->flags), c->what);
}

static const struct option long_options[] = {
    {"profile", required_argument, NULL, 'P'},
    {"json", no_argument, NULL, 'j'},
    {"follow", no_argument, NULL, 'f'},
    {"count", required_argument, NULL, 'n'},
    {"fd", required_argument, NULL, 'd'},
    {"gone", no_argument, NULL, 'g'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

int
number_read(const char *text, int64_t least, int64_t most, int64_t *out)
{
	char *end;
	long long n;

	if (text[0] < '0' || text[0] > '9')
		return -1;
	errno = 0;
	n = strtoll(text, &end, 10);
	if (errno != 0 || *end != '\0' || n < least || n > most)
		return -1;
	*out = n;
	return 0;
}

static const struct command *
command_find(const struct command *c, const char *name)
{

	while (c->name != NULL && strcmp(c->name, name) != 0)
		c++;
	return c->name == NULL ? NULL : c;
}

/* Returns -1. */
static int
wrong(struct error *e, const char *what, const char *word)
{
	return error_set(e, "%s%s%s", word, word[0] == '\0' ? "" : ": ", what);
}

/* Whatever else is wrong: in this form it is said. */
static bool
json_is_asked(int argc, char *argv[])
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--json") == 0)
			return true;
	}
	return false;
}

static int
flags_read(
    int argc, char *argv[], struct wish *w, unsigned *flags, struct error *e)
{
	int c;

	opterr = 0;
	while (
	    (c = getopt_long(argc, argv, ":P:fn:", long_options, NULL)) != -1) {
		switch (c) {
		case 'P':
			w->profile = optarg;
			break;
		case 'j':
			w->json = true;
			break;
		case 'f':
			w->follow = true;
			*flags |= FLAG_FOLLOW;
			break;
		case 'n':
			if (number_read(optarg, 1, EVENTS_MOST, &w->count) ==
			    -1)
				return wrong(e, "a count is 1 to 1000", "-n");
			*flags |= FLAG_COUNT;
			break;
		case 'd':
			if (number_read(optarg, FD_LEAST, INT_MAX, &w->fd) ==
			    -1)
				return wrong(
				    e, "a descriptor is 3 or more", "--fd");
			*flags |= FLAG_FD;
			break;
		case 'g':
			w->gone = true;
			*flags |= FLAG_GONE;
			break;
		case 'h':
			w->help = true;
			break;
		case ':':
			return wrong(
			    e, "needs a value", log_safe(argv[optind - 1]));
		default:
			return wrong(
			    e, "no such flag", log_safe(argv[optind - 1]));
		}
	}
	return 0;
}

/* What follows the command's name. */
static int
arguments_take(int argc, char *argv[], struct wish *w, struct error *e)
{
	int count = argc - optind - 1, most = w->command->most;

	if (w->command->argument == NULL && count > 0)
		return wrong(e, "takes no argument", w->command->name);
	if (w->command->argument == NULL)
		return 0;
	if (most <= 1 && count != 1)
		return wrong(e, "takes one argument", w->command->name);
	if (count < 1 || count > (most < 1 ? 1 : most))
		return error_set(
		    e, "%s takes %s", w->command->name, w->command->argument);
	w->argument = argv[optind + 1];
	w->more = argv + optind + 2;
	return 0;
}

int
words_read(int argc, char *argv[], const struct command *commands,
    struct wish *w, struct error *e)
{
	unsigned flags = 0;
	int64_t event;

	memset(w, 0, sizeof(*w));
	w->count = EVENTS_NORMAL;
	w->json = json_is_asked(argc, argv);
	if (flags_read(argc, argv, w, &flags, e) == -1)
		return -1;
	if (w->help)
		return 0;
	if (optind >= argc)
		return wrong(e, "no command", "");
	w->command = command_find(commands, argv[optind]);
	if (w->command == NULL)
		return wrong(e, "no such command", log_safe(argv[optind]));
	if ((flags & ~w->command->flags) != 0)
		return wrong(e, "takes no such flag", w->command->name);
	if ((w->command->flags & FLAG_FD & ~flags) != 0)
		return wrong(e, "--fd is missing", w->command->name);
	if ((w->command->flags & FLAG_GONE & ~flags) != 0)
		return wrong(e,
		    "--gone is missing: say that nothing of it runs",
		    w->command->name);
	if (arguments_take(argc, argv, w, e) == -1)
		return -1;
	if (w->command->takes_event &&
	    number_read(w->argument, 1, INT64_MAX, &event) == -1)
		return wrong(e, "is no id", log_safe(w->argument));
	if (w->profile != NULL && !path_profile_ok(w->profile))
		return wrong(e, "no profile's name", log_safe(w->profile));
	return 0;
}
