/*
 * What one more task costs at its start: connectd-mcpd from its fork to its
 * READY, which comes after all its walls and after the ledger has bound its
 * token.
 *
 *	bench_mcpd CONNECTD-MCPD
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "tests/nursery/nursery.h"
#include "tests/bench/samples.h"

#define STARTS 100
#define READY_BUDGET_US 3000
#define TOKEN "0123456789012345678901234567890123456789012"

/* ---- the ledger, as far as a start needs it ----------------------------- */

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

static const peer_handler ledger_handlers[MSG_COUNT] = {[MSG_BIND] = on_bind};
static const struct peer_ops ledger_ops = {.handlers = ledger_handlers};
static const peer_handler intake_handlers[MSG_COUNT];
static const struct peer_ops intake_ops = {.handlers = intake_handlers};

/* ---- one start ---------------------------------------------------------- */

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

static double
start_once(struct event_base *base, char *program)
{
	char *argv[] = {program, "--supervised", "--connect-state", "/tmp",
	    "--connect-token-fd", "4", NULL};
	struct peer *ledger, *intake;
	struct nursery n = {0};
	double began, took;
	int token = token_pipe();

	began = now_us();
	nursery_start(&n, base, ROLE_MCPD, argv, token, "/");
	nursery_configure(&n);
	ledger = nursery_link(&n, ROLE_LEDGER, &ledger_ops, NULL);
	intake = nursery_link(&n, ROLE_INTAKE, &intake_ops, NULL);
	nursery_await_ready(&n);
	took = now_us() - began;
	nursery_end(&n);
	peer_free(ledger);
	peer_free(intake);
	return took;
}

int
main(int argc, char **argv)
{
	struct samples starts = {0};
	struct event_base *base;
	int i;

	if (argc != 2)
		fatalx("usage: bench_mcpd CONNECTD-MCPD");
	log_init("bench_mcpd", LOG_LEVEL_WARN);
	base = nursery_base();
	for (i = 0; i < STARTS; i++)
		samples_add(&starts, start_once(base, argv[1]));
	samples_row(&starts, "mcpd_ready", READY_BUDGET_US);
	samples_clear(&starts);
	event_base_free(base);
	return 0;
}
