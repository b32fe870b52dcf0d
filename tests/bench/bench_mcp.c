/*
 * The wire alone, without a commit: an agent, connect-bridge and
 * connectd-mcpd, with this program as the agent, the supervisor and a ledger
 * that has its answer ready.
 *
 *	bench_mcp CONNECTD-MCPD CONNECT-BRIDGE
 */
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "mcpd/lines.h"
#include "tests/nursery/nursery.h"
#include "tests/bench/samples.h"

#define CALLS 4000
#define SIDE_BY_SIDE 16
#define LINE_BYTES_MAX (1024 * 1024)
#define PSS_BUDGET_KB 512
#define TOKEN "0123456789012345678901234567890123456789012"
#define INITIALIZE                                                        \
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\","        \
	"\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\"" \
	":{},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n"
#define CALL                                                        \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","  \
	"\"params\":{\"name\":\"basecamp_connect\",\"arguments\":{" \
	"\"action\":\"get_dispatch\",\"params\":{\"event_id\":101}}}}\n"

/* An agent with its bridge, and what it is waiting for. */
struct agent {
	struct event_base *base;
	pid_t bridge;
	int fd;
	struct event *readable;
	struct lines lines;
	size_t sent, heard, goal; /* lines */
	double began;
	struct samples *times; /* NULL: several are under way */
};

/* ---- a ledger with its answer ready ------------------------------------- */

static void
on_bind(struct peer *peer, struct msg *m, void *arg)
{
	struct reply_to to = peer_reply_to(peer, m);
	struct msg bound = {.type = MSG_BOUND};

	(void)arg;
	msg_free(m);
	bound.bound.task_id = bound.bound.agent_id = 1;
	bound.bound.attempt = "att_0123456789abcdef01234567";
	peer_reply(&to, &bound);
}

static void
on_get(struct peer *peer, struct msg *m, void *arg)
{
	static const char snapshot[] = "{\"type\":\"Comment\",\"title\":\"T\","
				       "\"content\":\"<div>Say hello</div>\"}";
	struct reply_to to = peer_reply_to(peer, m);
	struct msg reply = {.type = MSG_INSTRUCTION};

	(void)arg;
	msg_free(m);
	reply.instruction = (struct msg_instruction){.found = true,
	    .event_id = 101,
	    .event_type = "comment.created",
	    .trigger = "mentioned",
	    .delivery = "exposed",
	    .snapshot = {snapshot, sizeof(snapshot) - 1}};
	peer_reply(&to, &reply);
}

static const peer_handler ledger_handlers[MSG_COUNT] = {
    [MSG_BIND] = on_bind, [MSG_GET_DISPATCH] = on_get};
static const struct peer_ops ledger_ops = {.handlers = ledger_handlers};
static const peer_handler intake_handlers[MSG_COUNT];
static const struct peer_ops intake_ops = {.handlers = intake_handlers};

static int
token_pipe(void)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) == -1)
		fatal("pipe");
	if (write(fds[1], TOKEN, strlen(TOKEN)) != (ssize_t)strlen(TOKEN))
		fatal("token");
	(void)close(fds[1]);
	return fds[0];
}

/* ---- the agent ---------------------------------------------------------- */

static void
agent_say(struct agent *a, const char *line)
{
	a->sent++;
	a->began = now_us();
	if (send(a->fd, line, strlen(line), 0) != (ssize_t)strlen(line))
		fatal("bridge");
}

static void
agent_heard(struct agent *a)
{
	if (a->times != NULL)
		samples_add(a->times, now_us() - a->began);
	a->heard++;
	if (a->heard == a->goal)
		(void)event_base_loopbreak(a->base);
	else if (a->sent < a->goal)
		agent_say(a, CALL);
}

static void
on_agent(evutil_socket_t fd, short what, void *arg)
{
	struct agent *a = arg;
	struct json_span line;
	ssize_t n;

	(void)what;
	n = recv(fd, lines_room(&a->lines, 65536), 65536, 0);
	if (n <= 0)
		fatalx("the bridge is gone");
	lines_added(&a->lines, (size_t)n);
	while (lines_next(&a->lines, &line) != LINES_NONE)
		agent_heard(a);
}

/* COUNT calls, so many at once. The seconds that they took. */
static double
agent_run(struct agent *a, size_t count, size_t at_once, struct samples *times)
{
	double began = now_us();
	size_t i;

	a->times = times;
	a->sent = a->heard = 0;
	a->goal = count;
	for (i = 0; i < at_once; i++)
		agent_say(a, CALL);
	(void)event_base_dispatch(a->base);
	return (now_us() - began) / 1e6;
}

/* ---- the bridge --------------------------------------------------------- */

static int
listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd == -1 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) == -1 ||
	    listen(fd, 1) == -1)
		fatal("%s", path);
	return fd;
}

static void
bridge_start(struct agent *a, const char *program, const char *path)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == -1)
		fatal("socketpair");
	a->bridge = fork();
	if (a->bridge == -1)
		fatal("fork");
	if (a->bridge == 0) {
		(void)dup2(pair[1], STDIN_FILENO);
		(void)dup2(pair[1], STDOUT_FILENO);
		(void)execl(program, program, path, (char *)NULL);
		_exit(127);
	}
	(void)close(pair[1]);
	a->fd = pair[0];
	lines_init(&a->lines, LINE_BYTES_MAX);
	a->readable =
	    event_new(a->base, a->fd, EV_READ | EV_PERSIST, on_agent, a);
	if (a->readable == NULL || event_add(a->readable, NULL) == -1)
		fatalx("no event");
}

/* From the bridge's fork to the answer to initialize. */
static void
session_open(struct agent *a, struct nursery *mcpd, const char *program)
{
	char dir[] = "/tmp/bench_mcp.XXXXXX", path[64];
	struct msg m = {.type = MSG_CONNECTED};
	struct samples opened = {0};
	double began = now_us();
	int listener;

	if (mkdtemp(dir) == NULL)
		fatal("%s", dir);
	(void)snprintf(path, sizeof(path), "%s/s", dir);
	listener = listen_at(path);
	bridge_start(a, program, path);
	m.connected.stream = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	peer_notice(mcpd->child, &m);
	a->goal = 1;
	agent_say(a, INITIALIZE);
	(void)event_base_dispatch(a->base);
	samples_add(&opened, now_us() - began);
	samples_row(&opened, "mcp_open", 0);
	samples_clear(&opened);
	(void)close(listener);
	(void)unlink(path);
	(void)rmdir(dir);
}

/* 0 when the kernel does not show it to us: mcpd is not dumpable. */
static double
pss_kb(pid_t pid)
{
	char path[64], line[256];
	long kb = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	f = fopen(path, "r");
	if (f == NULL)
		return 0;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "Pss: %ld kB", &kb) == 1)
			break;
	}
	(void)fclose(f);
	return (double)kb;
}

static void
measure(struct agent *a, struct nursery *mcpd)
{
	struct samples times = {0};
	double seconds;

	(void)agent_run(a, CALLS / 10, 1, NULL);
	(void)agent_run(a, CALLS, 1, &times);
	samples_row(&times, "mcp_call", 0);
	samples_clear(&times);
	seconds = agent_run(a, CALLS, SIDE_BY_SIDE, NULL);
	figure_row("mcp_calls_16_at_once", "per_s", CALLS / seconds, 0, CALLS);
	figure_row("mcpd_pss", "kB", pss_kb(mcpd->pid), PSS_BUDGET_KB, 1);
	figure_row("bridge_pss", "kB", pss_kb(a->bridge), 0, 1);
}

int
main(int argc, char **argv)
{
	struct nursery mcpd = {0};
	struct peer *ledger, *intake;
	struct agent a = {.fd = -1};

	if (argc != 3)
		fatalx("usage: bench_mcp CONNECTD-MCPD CONNECT-BRIDGE");
	log_init("bench_mcp", LOG_LEVEL_WARN);
	a.base = nursery_base();
	nursery_start(&mcpd, a.base, ROLE_MCPD,
	    (char *[]){argv[1], "--supervised", "--connect-state", "/tmp",
		"--connect-token-fd", "4", NULL},
	    token_pipe(), "/");
	nursery_configure(&mcpd);
	ledger = nursery_link(&mcpd, ROLE_LEDGER, &ledger_ops, NULL);
	intake = nursery_link(&mcpd, ROLE_INTAKE, &intake_ops, NULL);
	nursery_await_ready(&mcpd);
	session_open(&a, &mcpd, argv[2]);
	measure(&a, &mcpd);
	event_free(a.readable);
	(void)close(a.fd);
	(void)waitpid(a.bridge, NULL, 0);
	nursery_end(&mcpd);
	peer_free(ledger);
	peer_free(intake);
	lines_free(&a.lines);
	event_base_free(a.base);
	return 0;
}
