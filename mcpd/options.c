#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "mcpd/options.h"
#include "mcpd/server.h"

const char options_usage[] =
    "usage: connectd-mcpd --connect-state DIR --connect-token-fd N\n"
    "           [--supervised] [--domains NAME[,NAME]]\n"
    "\n"
    "Serves the MCP tools of one connectd task: on standard input and\n"
    "output, with the token that `connectctl token` gives; or, started by\n"
    "connectd, to the task's own worker.\n"
    "\n"
    "  --connect-state DIR    the connector's state directory\n"
    "  --connect-token-fd N   a pipe or socket that holds the task's token\n"
    "  --supervised           descriptor 3 is the link to the supervisor\n"
    "  --domains LIST         only these domains: connect, thread; connect\n"
    "                         is always served\n"
    "  --help, --version\n";

enum word {
	OPTION_STATE = 256,
	OPTION_TOKEN_FD,
	OPTION_SUPERVISED,
	OPTION_DOMAINS,
	OPTION_READ_ONLY,
	OPTION_HELP,
	OPTION_VERSION
};

static const struct option words[] = {
    {"connect-state", required_argument, NULL, OPTION_STATE},
    {"connect-token-fd", required_argument, NULL, OPTION_TOKEN_FD},
    {"supervised", no_argument, NULL, OPTION_SUPERVISED},
    {"domains", required_argument, NULL, OPTION_DOMAINS},
    {"read-only", no_argument, NULL, OPTION_READ_ONLY},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

static const struct domain {
	const char *name;
	unsigned int bit;
} domains[] = {
    {"connect", DOMAIN_CONNECT},
    {"thread", DOMAIN_THREAD},
};

/* One rule for both: a blank value is an absent one. */
static const char *
value_or_absent(const char *value)
{
	return value[strspn(value, " \t\r\n")] == '\0' ? NULL : value;
}

static int
domain_add(unsigned int *out, const char *name, size_t len, struct error *e)
{
	size_t i;

	for (i = 0; i < sizeof(domains) / sizeof(domains[0]); i++) {
		if (strlen(domains[i].name) == len &&
		    memcmp(domains[i].name, name, len) == 0) {
			*out |= domains[i].bit;
			return 0;
		}
	}
	return error_set(
	    e, "--domains: no domain is named %s", log_safe_n(name, len));
}

static int
domains_read(const char *list, unsigned int *out, struct error *e)
{
	size_t len;

	*out = DOMAIN_CONNECT;
	for (;; list += len + 1) {
		len = strcspn(list, ",");
		if (domain_add(out, list, len, e) == -1)
			return -1;
		if (list[len] == '\0')
			return 0;
	}
}

static int
option_take(int word, struct options *out, struct error *e)
{
	if (word == OPTION_STATE)
		out->state = value_or_absent(optarg);
	else if (word == OPTION_TOKEN_FD)
		out->token_fd = value_or_absent(optarg);
	else if (word == OPTION_SUPERVISED)
		out->is_supervised = true;
	else if (word == OPTION_READ_ONLY)
		out->is_read_only = true;
	else if (word == OPTION_HELP)
		out->wants_help = true;
	else if (word == OPTION_VERSION)
		out->wants_version = true;
	else
		return domains_read(optarg, &out->domains, e);
	return 0;
}

static int
words_read(int argc, char **argv, struct options *out, struct error *e)
{
	int word;

	opterr = 0;
	optind = 0;
	for (;;) {
		word = getopt_long(argc, argv, "+", words, NULL);
		if (word == -1)
			break;
		if (word == '?')
			return error_set(e, "unknown or incomplete: %s",
			    log_safe(argv[optind - 1]));
		if (option_take(word, out, e) == -1)
			return -1;
	}
	if (optind < argc)
		return error_set(
		    e, "too many words: %s", log_safe(argv[optind]));
	return 0;
}

/* The rules among the flags, and the variable, in their order. */
static int
words_check(const struct options *o, struct error *e)
{
	if (o->state != NULL && o->is_read_only)
		return error_set(e, "--read-only: a task's worker reports");
	if (getenv(TOKEN_VARIABLE) != NULL) {
		(void)unsetenv(TOKEN_VARIABLE);
		return error_set(e,
		    TOKEN_VARIABLE
		    ": a token is not taken from the environment");
	}
	if (o->wants_help || o->wants_version)
		return 0;
	if (o->is_read_only)
		return error_set(e, "--read-only: a task's worker reports");
	if (o->state == NULL)
		return error_set(e, "--connect-state is missing");
	if (o->token_fd == NULL)
		return error_set(e, "--connect-token-fd is missing");
	return 0;
}

int
options_read(int argc, char **argv, struct options *out, struct error *e)
{
	*out = (struct options){.domains = DOMAINS_ALL};
	if (words_read(argc, argv, out, e) == -1)
		return -1;
	return words_check(out, e);
}
