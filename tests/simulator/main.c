/*
 * basecamp-sim: a Basecamp account on a loopback port, for tests
 * (feed.md 5 and 8). README.md beside this file tells how to steer it.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/http.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/log.h"
#include "tests/simulator/auth.h"
#include "tests/simulator/await.h"
#include "tests/simulator/exchange.h"
#include "tests/simulator/sim.h"
#include "tests/simulator/world.h"

#define IDLE_SECONDS 600

static const struct row_field options_fields[] = {
    {"page_size", ROW_NUMBER, offsetof(struct sim_options, page_size)},
    {"safety_delay_ms", ROW_NUMBER,
	offsetof(struct sim_options, safety_delay_ms)},
    {"ping_interval_ms", ROW_NUMBER,
	offsetof(struct sim_options, ping_interval_ms)},
    {"frozen_head", ROW_FLAG, offsetof(struct sim_options, frozen_head)},
    {"bind_positions", ROW_FLAG, offsetof(struct sim_options, bind_positions)},
    {"epoch", ROW_NUMBER, offsetof(struct sim_options, epoch)},
    {"page_directories", ROW_FLAG,
	offsetof(struct sim_options, page_directories)},
    {"account_id_number", ROW_FLAG,
	offsetof(struct sim_options, account_id_number)},
    {"write_events", ROW_FLAG, offsetof(struct sim_options, write_events)},
    {"wrap_content", ROW_FLAG, offsetof(struct sim_options, wrap_content)},
};
const struct row_type options_type = {"options", sizeof(struct sim_options),
    options_fields, sizeof(options_fields) / sizeof(options_fields[0]), NULL};

struct sim sim = {
    .account = 999,
    .options = {.page_size = 100,
	.ping_interval_ms = 3000,
	.write_events = true},
};

static const struct option long_options[] = {
    {"listen", required_argument, NULL, 'l'},
    {"page-size", required_argument, NULL, 'p'},
    {"safety-delay-ms", required_argument, NULL, 's'},
    {"account", required_argument, NULL, 'a'},
    {"ping-interval-ms", required_argument, NULL, 'i'},
    {"die-with-stdin", no_argument, NULL, 'd'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char usage_text[] =
    "usage: basecamp-sim [--listen ADDR:PORT] [--account ID]\n"
    "           [--page-size N] [--safety-delay-ms N]\n"
    "           [--ping-interval-ms N] [--die-with-stdin]\n";

static _Noreturn void
usage(void)
{
	(void)fputs(usage_text, stderr);
	exit(EXIT_USAGE);
}

static int64_t
option_number(const char *text, int64_t min, int64_t max)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (*text == '\0' || *end != '\0' || errno != 0 || value < min ||
	    value > max)
		usage();
	return value;
}

/* Where to listen; only loopback, whatever was asked. */
struct listener {
	char address[INET6_ADDRSTRLEN];
	uint16_t port; /* 0: the kernel chooses */
	bool is_six;
};

static bool
is_loopback(struct listener *l)
{
	struct in6_addr six;
	struct in_addr four;

	l->is_six = inet_pton(AF_INET6, l->address, &six) == 1;
	if (l->is_six)
		return IN6_IS_ADDR_LOOPBACK(&six);
	return inet_pton(AF_INET, l->address, &four) == 1 &&
	    ntohl(four.s_addr) >> 24 == 127;
}

/* 127.0.0.1:PORT or [::1]:PORT */
static void
listen_parse(const char *text, struct listener *l)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon == NULL ? 0 : (size_t)(colon - text);

	if (colon == NULL)
		usage();
	l->port = (uint16_t)option_number(colon + 1, 0, UINT16_MAX);
	if (len > 2 && *text == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	(void)snprintf(l->address, sizeof(l->address), "%.*s", (int)len, text);
	if (len >= sizeof(l->address) || !is_loopback(l))
		errx(EXIT_USAGE, "--listen: not a loopback address");
}

/* Fills sim.url from the socket that was bound. */
static void
url_set(const struct listener *l, int fd)
{
	struct sockaddr_storage bound;
	const struct sockaddr_in *four = (const void *)&bound;
	const struct sockaddr_in6 *six = (const void *)&bound;
	socklen_t len = sizeof(bound);

	if (getsockname(fd, (struct sockaddr *)&bound, &len) == -1)
		err(EXIT_FAILED, "getsockname");
	(void)snprintf(sim.url, sizeof(sim.url),
	    l->is_six ? "http://[%s]:%u" : "http://%s:%u", l->address,
	    ntohs(l->is_six ? six->sin6_port : four->sin_port));
}

static void
server_start(const struct listener *l)
{
	struct evhttp *http = evhttp_new(sim.base);
	struct evhttp_bound_socket *bound;
	int fd;

	evhttp_set_allowed_methods(http,
	    EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_PUT |
		EVHTTP_REQ_DELETE | EVHTTP_REQ_HEAD | EVHTTP_REQ_PATCH |
		EVHTTP_REQ_OPTIONS);
	evhttp_set_max_body_size(http, EXCHANGE_BODY_MAX);
	evhttp_set_max_headers_size(http, EXCHANGE_HEADERS_MAX);
	evhttp_set_timeout(http, IDLE_SECONDS);
	evhttp_set_default_content_type(http, NULL);
	evhttp_set_gencb(http, exchange_begin, NULL);
	bound = evhttp_bind_socket_with_handle(http, l->address, l->port);
	if (bound == NULL)
		err(EXIT_FAILED, "cannot listen");
	fd = evhttp_bound_socket_get_fd(bound);
	/* Inherited by what is accepted: a page is more than one write. */
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) ==
	    -1)
		err(EXIT_FAILED, "TCP_NODELAY");
	url_set(l, fd);
}

static void
ready_print(void)
{
	json_t *line;
	char account[24];

	(void)snprintf(account, sizeof(account), "%" PRId64, sim.account);
	line = json_pack("{s:s,s:s,s:I,s:I,s:I,s:s,s:s,s:s,s:s}", "url",
	    sim.url, "account", account, "agent_id", (json_int_t)WORLD_AGENT,
	    "operator_id", (json_int_t)WORLD_OPERATOR, "project_id",
	    (json_int_t)WORLD_PROJECT, "client_id", WORLD_CLIENT,
	    "client_secret", WORLD_SECRET, "operator_token",
	    WORLD_OPERATOR_TOKEN, "token_prefix", AUTH_TOKEN_PREFIX);
	(void)json_dumpf(line, stdout, JSON_COMPACT);
	(void)fputs("\n", stdout);
	(void)fflush(stdout);
	json_decref(line);
}

static void
on_signal(int signo, short what, void *unused)
{
	event_base_loopbreak(sim.base);
}

static void
on_stdin(int fd, short what, void *unused)
{
	char bytes[512];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
		event_base_loopbreak(sim.base);
}

static void
watch_start(struct event *watches[3], bool die_with_stdin)
{
	watches[0] = evsignal_new(sim.base, SIGTERM, on_signal, NULL);
	watches[1] = evsignal_new(sim.base, SIGINT, on_signal, NULL);
	event_add(watches[0], NULL);
	event_add(watches[1], NULL);
	if (!die_with_stdin)
		return;
	watches[2] = event_new(
	    sim.base, STDIN_FILENO, EV_READ | EV_PERSIST, on_stdin, NULL);
	event_add(watches[2], NULL);
}

/* Returns whether the end of stdin ends the process. */
static bool
options_read(int argc, char *argv[], struct listener *l)
{
	bool die_with_stdin = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (opt == 'l')
			listen_parse(optarg, l);
		else if (opt == 'p')
			sim.options.page_size = option_number(optarg, 1, 1000);
		else if (opt == 's')
			sim.options.safety_delay_ms =
			    option_number(optarg, 0, INT32_MAX);
		else if (opt == 'a')
			sim.account = option_number(optarg, 1, INT64_MAX / 2);
		else if (opt == 'i')
			sim.options.ping_interval_ms =
			    option_number(optarg, 1, INT32_MAX);
		else if (opt == 'd')
			die_with_stdin = true;
		else
			usage();
	}
	if (optind != argc)
		usage();
	return die_with_stdin;
}

int
main(int argc, char *argv[])
{
	struct listener listener;
	struct event *watches[3] = {NULL, NULL, NULL};
	bool die_with_stdin;

	log_init("basecamp-sim", LOG_LEVEL_INFO);
	listen_parse("127.0.0.1:0", &listener);
	die_with_stdin = options_read(argc, argv, &listener);
	(void)signal(SIGPIPE, SIG_IGN);
	sim.base = event_base_new();
	if (sim.base == NULL)
		errx(EXIT_FAILED, "no event loop");
	world_init();
	auth_init();
	await_init();
	server_start(&listener);
	watch_start(watches, die_with_stdin);
	ready_print();
	if (event_base_dispatch(sim.base) == -1)
		errx(EXIT_FAILED, "the event loop failed");
	return EXIT_OK;
}
