/*
 * Stands where Claude Code stands, and takes the time: it speaks the same
 * wires (stream-json to the dispatcher, MCP's stateless revision to its
 * server, one call at a time) and does with its first prompt what FOLDER/plan
 * says. Appends to FOLDER/samples:
 *
 *	prompt NANOSECONDS	of the wall clock, when its first byte came
 *	NAME MICROSECONDS	of a call, from its writing to its whole answer
 *	burst PER-SECOND	of calls of get, sixteen at a time
 *
 * A plan is words: get, ack, boost, reply, complete, burst, linger (until the
 * end of stdin); boost*20 is done twenty times, burst*4000 is one of so many.
 *
 *	bench-agent FOLDER CLAUDE'S ARGUMENTS...
 */
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "tests/bench/samples.h"

#define LINE_ROOM (256 * 1024)
#define PLAN_MAX 4096
#define BURST_AT_ONCE 16
#define META                                                      \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":" \
	"\"2026-07-28\",\"io.modelcontextprotocol/clientInfo\":{" \
	"\"name\":\"claude-code\",\"version\":\"2.1.332\"},"      \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"

extern char **environ;

static struct {
	const char *folder, *session, *declaration;
	long long event_id;
	struct buffer samples;
	int to_server, from_server;
	pid_t server;
	unsigned int next_id, said;
	char line[LINE_ROOM]; /* the last one read */
} self;

/* ---- bytes -------------------------------------------------------------- */

static void
write_all(int fd, const char *bytes, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = write(fd, bytes, len);
		if (n == -1)
			fatal("write");
		bytes += n;
		len -= (size_t)n;
	}
}

/* One line into self.line. The peer sends no second one unasked. */
static bool
read_line(int fd)
{
	size_t len = 0;
	ssize_t n;

	do {
		n = read(fd, self.line + len, LINE_ROOM - 1 - len);
		if (n <= 0)
			return false;
		len += (size_t)n;
	} while (self.line[len - 1] != '\n');
	self.line[len] = '\0';
	return true;
}

static void
read_file(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd == -1 ? -1 : read(fd, out, size - 1);

	if (n == -1)
		fatal("%s", path);
	out[n] = '\0';
	(void)close(fd);
}

/* ---- the MCP server ----------------------------------------------------- */

static void
server_spawn(const json_t *entry)
{
	const char *program =
	    json_string_value(json_object_get(entry, "command"));
	const char *socket = json_string_value(
	    json_array_get(json_object_get(entry, "args"), 0));
	char *argv[] = {
	    (char *)(uintptr_t)program, (char *)(uintptr_t)socket, NULL};
	posix_spawn_file_actions_t files;
	int in[2], out[2];

	if (program == NULL || socket == NULL)
		fatalx("%s: no server", self.declaration);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) == -1 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out) == -1)
		fatal("socketpair");
	(void)posix_spawn_file_actions_init(&files);
	(void)posix_spawn_file_actions_adddup2(&files, in[1], STDIN_FILENO);
	(void)posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
	errno = posix_spawn(&self.server, program, &files, NULL, argv, environ);
	if (errno != 0)
		fatal("%s", program);
	(void)posix_spawn_file_actions_destroy(&files);
	(void)close(in[1]);
	(void)close(out[1]);
	self.to_server = in[0];
	self.from_server = out[0];
}

static void
server_start(void)
{
	json_t *root = json_load_file(self.declaration, 0, NULL);
	json_t *servers = json_object_get(root, "mcpServers");

	server_spawn(json_object_get(servers, "basecamp"));
	json_decref(root);
}

/* One request and its answer; how long that took. */
static double
server_ask(const char *method, const char *params)
{
	char text[2048], id[32];
	double began;
	int len;

	len = snprintf(text, sizeof(text),
	    "{\"method\":\"%s\",\"params\":{%s" META
	    "},\"jsonrpc\":\"2.0\",\"id\":%u}\n",
	    method, params, self.next_id);
	if (len < 0 || (size_t)len >= sizeof(text))
		fatalx("%s: too long", method);
	began = now_us();
	write_all(self.to_server, text, (size_t)len);
	if (!read_line(self.from_server))
		fatalx("%s: the server is gone", method);
	began = now_us() - began;
	(void)snprintf(id, sizeof(id), "\"id\":%u", self.next_id++);
	if (strstr(self.line, id) == NULL ||
	    strstr(self.line, "\"isError\":true") != NULL ||
	    strstr(self.line, "\"error\"") != NULL)
		fatalx("%s: %.400s", text, self.line);
	return began;
}

/* ---- the steps of a plan ------------------------------------------------ */

static const struct step {
	const char *name, *tool, *action;
	const char *params; /* printf: a number that differs each time */
} steps[] = {
    {"get", "basecamp_connect", "get_dispatch", ""},
    {"ack", "basecamp_connect", "ack_dispatch", ""},
    {"boost", "basecamp_thread", "boost", ",\"content\":\"on it %u\""},
    {"reply", "basecamp_thread", "reply",
	",\"content\":\"Fixed, part %u: the date picker opens again.\""},
    {"complete", "basecamp_connect", "complete_dispatch",
	",\"outcome\":\"succeeded\""},
};

static void
step_do(const struct step *step, const char *name)
{
	char params[512], more[128] = "";

	if (strstr(step->params, "%u") != NULL)
		(void)snprintf(more, sizeof(more), "%.*s%u%s",
		    (int)(strstr(step->params, "%u") - step->params),
		    step->params, ++self.said, strstr(step->params, "%u") + 2);
	else
		(void)snprintf(more, sizeof(more), "%s", step->params);
	(void)snprintf(params, sizeof(params),
	    "\"name\":\"%s\",\"arguments\":{\"action\":\"%s\",\"params\":"
	    "{\"event_id\":%lld%s}},",
	    step->tool, step->action, self.event_id, more);
	buffer_printf(
	    &self.samples, "%s %.1f\n", name, server_ask("tools/call", params));
}

static void
burst_say(void)
{
	char text[2048];
	int len = snprintf(text, sizeof(text),
	    "{\"method\":\"tools/call\",\"params\":{\"name\":"
	    "\"basecamp_connect\",\"arguments\":{\"action\":"
	    "\"get_dispatch\",\"params\":{\"event_id\":%lld}}," META
	    "},\"jsonrpc\":\"2.0\",\"id\":%u}\n",
	    self.event_id, self.next_id++);

	write_all(self.to_server, text, (size_t)len);
}

/* COUNT answers, with sixteen asked for at any time; they may share a read. */
static void
burst_do(long count)
{
	long said, heard = 0;
	double began = now_us();
	char *lf;
	ssize_t n;

	for (said = 0; said < BURST_AT_ONCE && said < count; said++)
		burst_say();
	while (heard < count) {
		n = read(self.from_server, self.line, LINE_ROOM);
		if (n <= 0)
			fatalx("burst: the server is gone");
		for (lf = self.line;
		     (lf = memchr(lf, '\n', (size_t)(self.line + n - lf))) !=
		     NULL;
		     lf++) {
			heard++;
			if (said++ < count)
				burst_say();
		}
	}
	buffer_printf(&self.samples, "burst %.1f\n",
	    (double)count / (now_us() - began) * 1e6);
}

static const struct step *
step_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (strcmp(steps[i].name, name) == 0)
			return &steps[i];
	}
	fatalx("no step is called %s", name);
}

static void
plan_do(void)
{
	char plan[PLAN_MAX], path[512], *word, *rest = plan, *star;
	long times;

	(void)snprintf(path, sizeof(path), "%s/plan", self.folder);
	read_file(path, plan, sizeof(plan));
	while ((word = strsep(&rest, " \n")) != NULL) {
		if (*word == '\0')
			continue;
		times = 1;
		if ((star = strchr(word, '*')) != NULL) {
			*star = '\0';
			times = strtol(star + 1, NULL, 10);
		}
		if (strcmp(word, "linger") == 0) {
			while (read_line(STDIN_FILENO))
				continue;
			continue;
		}
		if (strcmp(word, "burst") == 0) {
			burst_do(times);
			continue;
		}
		while (times-- > 0)
			step_do(step_find(word), word);
	}
}

/* ---- the dispatcher ----------------------------------------------------- */

static void
prompt_await(void)
{
	char *event;

	/* Its arrival counts from the first byte, which comes with the rest. */
	if (!read_line(STDIN_FILENO))
		exit(0);
	buffer_printf(&self.samples, "prompt %" PRId64 "\n", clock_wall_ns());
	event = strstr(self.line, ", event ");
	if (event == NULL)
		fatalx("no event in the prompt: %.400s", self.line);
	self.event_id = strtoll(event + strlen(", event "), NULL, 10);
}

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void
say(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	write_all(STDOUT_FILENO, text, strlen(text));
}

static void
samples_keep(void)
{
	char path[512];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/samples", self.folder);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd == -1)
		fatal("%s", path);
	write_all(fd, self.samples.bytes, self.samples.len);
	(void)close(fd);
}

static const char *
argument(int argc, char **argv, const char *name)
{
	int i;

	for (i = 1; i < argc - 1; i++) {
		if (strcmp(argv[i], name) == 0)
			return argv[i + 1];
	}
	fatalx("usage: bench-agent FOLDER ... (no %s)", name);
}

int
main(int argc, char **argv)
{
	log_init("bench-agent", LOG_LEVEL_INFO);
	self.session = argument(argc, argv, "--session-id");
	self.declaration = argument(argc, argv, "--mcp-config");
	self.folder = argv[1];
	prompt_await();
	server_start();
	(void)server_ask("server/discover", "");
	(void)server_ask("tools/list", "");
	say("{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"%s\","
	    "\"permissionMode\":\"acceptEdits\",\"mcp_servers\":"
	    "[{\"name\":\"basecamp\",\"status\":\"connected\"}]}\n",
	    self.session);
	plan_do();
	samples_keep();
	say("{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,"
	    "\"session_id\":\"%s\",\"stop_reason\":\"end_turn\"}\n",
	    self.session);
	while (read_line(STDIN_FILENO))
		continue;
	(void)close(self.to_server);
	(void)waitpid(self.server, NULL, 0);
	return 0;
}
