/*
 * connect-bridge: an agent's MCP server is a program on its stdio; connectd's
 * is a process behind a socket that may die and come back. This relays whole
 * lines between the two, and hides the deaths (design 6.1). It runs as the
 * worker and holds no secret: what it knows, the agent has told it.
 */
#include <sys/socket.h>
#include <sys/un.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "mcpd/lines.h"
#include "mcpd/store.h"

/* A little more than mcpd takes: it is to see for itself what is too long. */
#define AGENT_LINE_MAX (4 * 1024 * 1024 + 2)
/* Who does not read is not read for either. */
#define QUEUE_HIGH (1024 * 1024)
#define READ_SIZE 65536
/* From the end of mcpd, or the first request after it, to its first answer. */
#ifndef PATIENCE_MS
#define PATIENCE_MS 30000
#endif
#define PAUSE_FIRST_MS 50
#define PAUSE_MOST_MS 1000
/* For the last words to an agent that reads slowly. */
#define FAREWELL_MS 1000

struct queue {
	struct buffer bytes;
	size_t done;
};

struct bridge {
	struct sockaddr_un address;
	int mcpd; /* -1: not connected */
	struct lines from_agent, from_mcpd;
	struct queue to_agent, to_mcpd;
	struct store store;
	bool is_answering;      /* mcpd said something on this connection */
	int64_t patience_until; /* 0: not running */
	int64_t pause_ms, retry_at;
};

static volatile sig_atomic_t is_told_to_end;

static void
on_signal(int number)
{
	(void)number;
	is_told_to_end = 1;
}

/* ---- queues ----------------------------------------------------------- */

static size_t
queue_len(const struct queue *q)
{
	return q->bytes.len - q->done;
}

static void
queue_clear(struct queue *q)
{
	buffer_free(&q->bytes);
	q->done = 0;
}

static void
queue_line(struct queue *q, const struct json_span *line)
{
	buffer_add(&q->bytes, line->bytes, line->len);
	buffer_add_char(&q->bytes, '\n');
}

/*
 * Write what poll() has promised room for. The descriptor is the parent's as
 * well and stays blocking, so no more than PIPE_BUF goes at once.
 */
static int
queue_write(struct queue *q, int fd)
{
	size_t len = queue_len(q) < PIPE_BUF ? queue_len(q) : PIPE_BUF;
	ssize_t n = write(fd, q->bytes.bytes + q->done, len);

	if (n == -1)
		return errno == EINTR || errno == EAGAIN ? 0 : -1;
	q->done += (size_t)n;
	if (queue_len(q) == 0)
		queue_clear(q);
	return 0;
}

static bool
is_writable(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLOUT) != 0;
}

/* As far as it goes now. */
static int
queue_flush(struct queue *q, int fd)
{
	while (queue_len(q) != 0 && is_writable(fd)) {
		if (queue_write(q, fd) == -1)
			return -1;
	}
	return 0;
}

/* ---- ends ------------------------------------------------------------- */

/* The agent is done with us: what it has not read it does not want. */
static _Noreturn void
end_quietly(void)
{
	exit_now(EXIT_OK);
}

static _Noreturn void
give_up(struct bridge *b)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
	int64_t until = clock_monotonic_ms() + FAREWELL_MS, left;

	store_give_up(&b->store, &b->to_agent.bytes);
	while (queue_len(&b->to_agent) != 0 && !is_told_to_end) {
		left = until - clock_monotonic_ms();
		if (left <= 0 || poll(&out, 1, (int)left) == 0 ||
		    queue_flush(&b->to_agent, STDOUT_FILENO) == -1)
			break;
	}
	exit_now(EXIT_NOT_RUNNING);
}

/* ---- the connection to mcpd ------------------------------------------- */

/* Its clock runs while the agent waits and mcpd has not spoken. */
static void
patience_check(struct bridge *b)
{
	if (b->is_answering || store_is_empty(&b->store))
		b->patience_until = 0;
	else if (b->patience_until == 0)
		b->patience_until = clock_monotonic_ms() + PATIENCE_MS;
	else if (clock_monotonic_ms() >= b->patience_until)
		give_up(b);
}

static int
mcpd_connect(struct bridge *b)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd == -1)
		return -1;
	if (connect(fd, (struct sockaddr *)&b->address, sizeof(b->address)) ==
	    -1) {
		(void)close(fd);
		return -1;
	}
	b->mcpd = fd;
	return 0;
}

/* Connect and say again what a new mcpd does not know; else wait longer. */
static void
mcpd_try(struct bridge *b)
{
	if (mcpd_connect(b) == 0) {
		store_replay(&b->store, &b->to_mcpd.bytes);
		return;
	}
	b->retry_at = clock_monotonic_ms() + b->pause_ms;
	b->pause_ms =
	    b->pause_ms * 2 < PAUSE_MOST_MS ? b->pause_ms * 2 : PAUSE_MOST_MS;
}

/*
 * It is gone. Half a line of it is nothing, and what was on its way to it is
 * in the store. The first try is at once, the next ones wait: something may
 * accept and close over and over.
 */
static void
mcpd_gone(struct bridge *b)
{
	(void)close(b->mcpd);
	b->mcpd = -1;
	lines_free(&b->from_mcpd);
	queue_clear(&b->to_mcpd);
	if (!store_is_whole(&b->store))
		give_up(b);
	if (b->is_answering) {
		b->is_answering = false;
		b->pause_ms = PAUSE_FIRST_MS;
		mcpd_try(b);
		return;
	}
	b->retry_at = clock_monotonic_ms() + b->pause_ms;
	b->pause_ms =
	    b->pause_ms * 2 < PAUSE_MOST_MS ? b->pause_ms * 2 : PAUSE_MOST_MS;
}

static void
mcpd_readable(struct bridge *b)
{
	ssize_t n =
	    read(b->mcpd, lines_room(&b->from_mcpd, READ_SIZE), READ_SIZE);
	struct json_span line;
	enum lines_got got;

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		mcpd_gone(b);
		return;
	}
	lines_added(&b->from_mcpd, (size_t)n);
	while ((got = lines_next(&b->from_mcpd, &line)) != LINES_NONE) {
		if (got == LINES_CUT)
			continue;
		b->is_answering = true;
		b->pause_ms = PAUSE_FIRST_MS;
		if (store_received(&b->store, &line))
			queue_line(&b->to_agent, &line);
	}
}

/* ---- the agent -------------------------------------------------------- */

static void
agent_readable(struct bridge *b)
{
	ssize_t n = read(
	    STDIN_FILENO, lines_room(&b->from_agent, READ_SIZE), READ_SIZE);
	struct json_span line;

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		end_quietly();
	lines_added(&b->from_agent, (size_t)n);
	while (lines_next(&b->from_agent, &line) != LINES_NONE) {
		store_sent(&b->store, &line);
		if (b->mcpd != -1)
			queue_line(&b->to_mcpd, &line);
	}
}

/* ---- the loop --------------------------------------------------------- */

enum { AGENT_IN, AGENT_OUT, MCPD, POLL_COUNT };

/* The agent is not read while what it sent piles up. */
static void
poll_prepare(const struct bridge *b, struct pollfd pfd[POLL_COUNT])
{
	bool is_full = queue_len(&b->to_mcpd) > QUEUE_HIGH ||
	    b->store.unit_count >= STORE_UNITS_MAX;

	pfd[AGENT_IN] =
	    (struct pollfd){.fd = STDIN_FILENO, .events = is_full ? 0 : POLLIN};
	pfd[AGENT_OUT] = (struct pollfd){.fd = STDOUT_FILENO,
	    .events = queue_len(&b->to_agent) != 0 ? POLLOUT : 0};
	pfd[MCPD] = (struct pollfd){.fd = b->mcpd};
	if (queue_len(&b->to_agent) <= QUEUE_HIGH)
		pfd[MCPD].events |= POLLIN;
	if (queue_len(&b->to_mcpd) != 0)
		pfd[MCPD].events |= POLLOUT;
}

/* Until something must be done by itself; NULL: never. */
static const struct timespec *
poll_timeout(const struct bridge *b, struct timespec *ts)
{
	int64_t until = b->patience_until, left;

	if (b->mcpd == -1 && !store_is_empty(&b->store) &&
	    (until == 0 || b->retry_at < until))
		until = b->retry_at;
	if (until == 0)
		return NULL;
	left = until - clock_monotonic_ms();
	if (left < 0)
		left = 0;
	ts->tv_sec = left / 1000;
	ts->tv_nsec = left % 1000 * 1000000;
	return ts;
}

/* An agent that is gone without having been read to its end is gone, too. */
static void
agent_check(struct bridge *b, const struct pollfd pfd[POLL_COUNT])
{
	if (pfd[AGENT_IN].revents & POLLIN)
		agent_readable(b);
	else if (pfd[AGENT_IN].revents & (POLLHUP | POLLERR | POLLNVAL))
		end_quietly();
	if (pfd[AGENT_OUT].revents & (POLLHUP | POLLERR | POLLNVAL))
		end_quietly();
}

static void
mcpd_check(struct bridge *b, short revents)
{
	if (b->mcpd == -1) {
		if (!store_is_empty(&b->store) &&
		    clock_monotonic_ms() >= b->retry_at)
			mcpd_try(b);
		return;
	}
	if (revents & (POLLIN | POLLHUP | POLLERR))
		mcpd_readable(b);
}

/* A failed write says nothing: the reading side will find its last words. */
static void
write_all(struct bridge *b)
{
	if (queue_flush(&b->to_agent, STDOUT_FILENO) == -1)
		end_quietly();
	if (b->mcpd != -1 && queue_flush(&b->to_mcpd, b->mcpd) == -1)
		queue_clear(&b->to_mcpd);
}

static _Noreturn void
bridge_run(struct bridge *b, const sigset_t *unblocked)
{
	struct pollfd pfd[POLL_COUNT];
	struct timespec ts;

	for (;;) {
		patience_check(b);
		poll_prepare(b, pfd);
		if (ppoll(pfd, POLL_COUNT, poll_timeout(b, &ts), unblocked) ==
			-1 &&
		    errno != EINTR)
			fatal("ppoll");
		if (is_told_to_end)
			end_quietly();
		agent_check(b, pfd);
		mcpd_check(b, pfd[MCPD].revents);
		write_all(b);
	}
}

/* ---- start ------------------------------------------------------------ */

/*
 * An agent gives its servers all that it has, keys included. Nothing of it is
 * ours to have: it is wiped where /proc shows it, and then forgotten.
 */
static void
environment_wipe(void)
{
	extern char **environ;
	char **at;

	if (environ == NULL)
		return;
	for (at = environ; *at != NULL; at++)
		explicit_bzero(*at, strlen(*at));
	environ[0] = NULL;
}

/* INT, TERM end the loop; they arrive in ppoll() only. */
static void
signals_set(sigset_t *unblocked)
{
	struct sigaction act = {.sa_handler = on_signal};
	sigset_t blocked;

	(void)sigemptyset(&act.sa_mask);
	(void)sigaction(SIGINT, &act, NULL);
	(void)sigaction(SIGTERM, &act, NULL);
	act.sa_handler = SIG_IGN;
	(void)sigaction(SIGPIPE, &act, NULL);
	(void)sigemptyset(&blocked);
	(void)sigaddset(&blocked, SIGINT);
	(void)sigaddset(&blocked, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &blocked, unblocked);
	(void)sigdelset(unblocked, SIGINT);
	(void)sigdelset(unblocked, SIGTERM);
}

int
main(int argc, char **argv)
{
	static struct bridge b = {.mcpd = -1, .pause_ms = PAUSE_FIRST_MS};
	sigset_t unblocked;

	environment_wipe();
	log_init("connect-bridge", LOG_LEVEL_INFO);
	if (argc != 2 || argv[1][0] == '-' ||
	    strlen(argv[1]) >= sizeof(b.address.sun_path)) {
		log_warnx("usage: connect-bridge SOCKET (an agent starts it as "
			  "its MCP server)");
		return EXIT_USAGE;
	}
	b.address.sun_family = AF_UNIX;
	memcpy(b.address.sun_path, argv[1], strlen(argv[1]));
	store_init(&b.store);
	lines_init(&b.from_agent, AGENT_LINE_MAX);
	lines_init(&b.from_mcpd, LINES_MCPD_MAX);
	signals_set(&unblocked);
	mcpd_try(&b);
	bridge_run(&b, &unblocked);
}
