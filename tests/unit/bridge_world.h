/*
 * connect-bridge itself between an agent and a server that are both the test.
 * Every wait has a deadline.
 */
#ifndef TESTS_BRIDGE_WORLD_H
#define TESTS_BRIDGE_WORLD_H

#include <stdbool.h>
#include <sys/types.h>

#include "mcpd/lines.h"

#define DEADLINE_MS 10000
#define SECRET "sk-not-a-real-key"

#define INITIALIZE                                                    \
	"{\"method\":\"initialize\",\"params\":{\"protocolVersion\":" \
	"\"2025-11-25\",\"x\":{\"id\":5}},\"jsonrpc\":\"2.0\",\"id\":0}"
#define REPLAYED(n)                                                    \
	"{\"method\":\"initialize\",\"params\":{\"protocolVersion\":"  \
	"\"2025-11-25\",\"x\":{\"id\":5}},\"jsonrpc\":\"2.0\",\"id\":" \
	"\"connect-bridge:" n "\"}"
#define OPENED(id)                                                            \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{\"protocolVersion\":" \
	"\"2025-11-25\"}}"
#define OWN(n) "\"connect-bridge:" n "\""
#define INITIALIZED \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"
#define CALL(id) "{\"id\":" id ",\"method\":\"tools/call\",\"jsonrpc\":\"2.0\"}"
#define DONE(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{}}"
#define CANCEL(id)                                                     \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"," \
	"\"params\":{\"requestId\":" id "}}"
#define LOST(id)                                                         \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":-32603," \
	"\"message\":\"The connector does not answer\"}}"
#define PING "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}"
#define PONG "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}"

struct bridge_world {
	char dir[64], path[108];
	int listener, server;      /* -1: nobody is connected */
	int agent_in, agent_out;   /* the agent's ends */
	struct lines heard, asked; /* by the agent, by the server */
	pid_t pid;
};

/* The programs: the second one's patience is 400 ms. */
extern const char *bridge_path, *impatient_path;
/* Claude gives its servers sockets, Codex pipes. */
extern bool uses_pipes;

/* Arguments of main(): both paths. */
int bridge_paths(int argc, char **argv);
struct bridge_world *bridge_start(const char *path);
/* Ends whatever still runs. */
void bridge_end(struct bridge_world *w);
/* Its exit status, when it ends by itself. */
int wait_exit(struct bridge_world *w);

void listen_at(struct bridge_world *w);
/* The bridge connects, and is heard and answered. */
void accept_server(struct bridge_world *w);
void server_close(struct bridge_world *w);
void open_session(struct bridge_world *w);

bool readable(int fd, int ms);
void write_all(int fd, const char *bytes, size_t len);
/* The next line, NULL at the end or when none comes in MS. */
const char *hear(int fd, struct lines *l, int ms);
/* A line said, or the line that must come next. */
void agent_says(struct bridge_world *w, const char *line);
void agent_hears(struct bridge_world *w, const char *line);
void server_says(struct bridge_world *w, const char *line);
void server_hears(struct bridge_world *w, const char *line);
/* Nothing but what a question brings: it is the next thing heard. */
void nothing_else_is_under_way(struct bridge_world *w);

#endif
