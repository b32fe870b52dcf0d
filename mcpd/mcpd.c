/*
 * connectd-mcpd: serves MCP to one worker and reports what it says. It holds
 * the task's token and nothing else; it knows the ledger, from which all
 * truth comes, and intake, which reads for it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/process.h"
#include "common/role.h"
#include "mcpd/options.h"
#include "mcpd/profile.h"
#include "mcpd/server.h"
#include "mcpd/standalone.h"
#include "mcpd/token.h"

#define TITLE "connectd-mcpd"

static struct role role;
static struct server server;

/* ---- what others send ------------------------------------------------- */

static void
on_connected(struct peer *peer, struct msg *m, void *arg)
{
	server_connect(&server, m->connected.stream, m->connected.stream);
	m->connected.stream = -1;
	msg_free(m);
}

static void
on_post_settled(struct peer *peer, struct msg *m, void *arg)
{
	server_post_settled(&server, m->post_settled.intent_id);
	msg_free(m);
}

/* What settled meanwhile was told to nobody: ask. */
static void
on_ledger_linked(struct peer *peer, void *arg)
{
	server_post_settled(&server, 0);
}

static const peer_handler supervisor_handlers[MSG_COUNT] = {
    [MSG_CONNECTED] = on_connected,
};
static const struct peer_ops supervisor_ops = {.handlers = supervisor_handlers};

static const peer_handler ledger_handlers[MSG_COUNT] = {
    [MSG_POST_SETTLED] = on_post_settled,
};
static const struct peer_ops ledger_ops = {
    .handlers = ledger_handlers,
    .linked = on_ledger_linked,
};

static const peer_handler intake_handlers[MSG_COUNT] = {NULL};
static const struct peer_ops intake_ops = {.handlers = intake_handlers};

/* ---- the role --------------------------------------------------------- */

static void
mcpd_configured(struct role *r)
{
	server.call_deadline_ms = r->config->limits[LIMIT_call_deadline];
	server.post_wait_ms = r->config->limits[LIMIT_post_wait];
}

static void
on_idle(void *arg)
{
	role_exit(&role, EXIT_OK);
}

static void
on_stop_bound(evutil_socket_t fd, short what, void *arg)
{
	log_warnx("stopped with %zu calls unanswered", server.call_count);
	role_exit(&role, EXIT_OK);
}

/*
 * The worker's tree is gone: what its connection still holds is read to the
 * end and is in the ledger before this process is.
 */
static void
mcpd_stop(struct role *r, int64_t bound_ms)
{
	struct timeval tv = {bound_ms / 1000, bound_ms % 1000 * 1000};

	if (event_base_once(
		r->base, -1, EV_TIMEOUT, on_stop_bound, NULL, &tv) == -1)
		fatalx("stop: no timer");
	server_when_idle(&server, on_idle, NULL);
}

static const struct role_row row = {
    .role = ROLE_MCPD,
    .title = TITLE,
    .nofile = 1024,       /* each request may hold two memory files */
    .writes_files = true, /* memory files */
    .sandbox = &mcpd_profile,
    .peers =
	{
	    [ROLE_SUPERVISOR] = &supervisor_ops,
	    [ROLE_LEDGER] = &ledger_ops,
	    [ROLE_INTAKE] = &intake_ops,
	},
    .configured = mcpd_configured,
    .stop = mcpd_stop,
};

/* ---- start ------------------------------------------------------------ */

static void
on_bound(struct peer *peer, struct msg *reply, void *arg)
{
	if (reply->type == MSG_FAILED) {
		log_warnx("the token names no current task: %s",
		    log_safe(reply->failed.reason));
		role_exit(&role, EXIT_REFUSED);
	}
	server.agent_id = reply->bound.agent_id;
	role_ready(&role);
}

static _Noreturn void
serve_supervised(char *token, unsigned int domains)
{
	struct msg m = {.type = MSG_BIND};

	role_start(&role, &row, NULL);
	server_init(&server, role.base, domains);
	memcpy(server.token, token, TOKEN_LEN);
	token_free(token);
	server.call_deadline_ms = limit_rows[LIMIT_call_deadline].normal;
	server.post_wait_ms = limit_rows[LIMIT_post_wait].normal;
	server.ledger = role_peer(&role, ROLE_LEDGER, "");
	server.intake = role_peer(&role, ROLE_INTAKE, "");
	m.bind.token = server.token;
	(void)peer_request(server.ledger, &m, on_bound, NULL);
	role_run(&role);
}

static int
print(const char *text)
{
	return fputs(text, stdout) == EOF || fflush(stdout) == EOF ? EXIT_FAILED
								   : EXIT_OK;
}

int
main(int argc, char **argv)
{
	struct options options;
	struct error e;
	char *token;
	int fd;

	log_init(TITLE, LOG_LEVEL_INFO);
	if (process_seal(&e) == -1)
		role_start_failed(EXIT_WALLS, e.text);
	if (options_read(argc, argv, &options, &e) == -1)
		role_start_failed(EXIT_USAGE, e.text);
	if (options.wants_help)
		return print(options_usage);
	if (options.wants_version)
		return print(TITLE " " CONNECTD_VERSION "\n");
	if (token_fd_parse(options.token_fd, &fd, &e) == -1)
		role_start_failed(EXIT_USAGE, e.text);
	if (options.is_supervised && fd == ROLE_LINK_FD)
		role_start_failed(
		    EXIT_USAGE, "--connect-token-fd: 3 is the link");
	token = token_read(fd, &e);
	if (token == NULL)
		role_start_failed(EXIT_CONFIG, e.text);
	if (!options.is_supervised)
		standalone_serve(
		    &server, token, options.state, options.domains);
	if (strlen(token) != TOKEN_LEN)
		role_start_failed(
		    EXIT_REFUSED, "the token names no current task");
	serve_supervised(token, options.domains);
}
