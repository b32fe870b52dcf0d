/*
 * What an acknowledged write costs: the real connectd-ledger, behind its walls
 * and its socket, with the whole schema. RECORDs go out a given number at a
 * time; each counts from its sending to its answer, which comes after the
 * COMMIT. Prints one JSON object.
 *
 *	bench_ledger CONNECTD-LEDGER [DIRECTORY]
 */
#include <sys/socket.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/identity.h"
#include "common/log.h"
#include "common/peer.h"
#include "common/xmalloc.h"

#define RUN_ID "00000000000000000000000000000000"

static struct {
	struct event_base *base;
	struct peer *child; /* as the supervisor sees it */
	struct peer *asked; /* as intake sees it */
	bool is_ready;
	int64_t next_id;
	size_t sent, answered, wanted, in_flight;
	double *took_us, *began_us;
} bench;

static double
now_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* ---- the supervisor's part --------------------------------------------- */

static void
on_ready(struct peer *peer, struct msg *m, void *arg)
{
	bench.is_ready = true;
	msg_free(m);
	(void)event_base_loopbreak(bench.base);
}

static void
on_log(struct peer *peer, struct msg *m, void *arg)
{
	log_info("%s", log_safe(m->log.text));
	msg_free(m);
}

static void
on_other(struct peer *peer, struct msg *m, void *arg)
{
	msg_free(m);
}

static void
on_gone(struct peer *peer, void *arg)
{
	fatalx("connectd-ledger is gone");
}

static const peer_handler child_handlers[MSG_COUNT] = {
    [MSG_READY] = on_ready,
    [MSG_LOG] = on_log,
    [MSG_LINE] = on_other,
    [MSG_STATE] = on_other,
    [MSG_STARTING] = on_other,
};
static const struct peer_ops child_ops = {child_handlers, NULL, on_gone, NULL};
static const peer_handler no_handlers[MSG_COUNT];
static const struct peer_ops intake_ops = {no_handlers, NULL, on_gone, NULL};

static void
send_setup(const char *dir)
{
	struct msg m = {.type = MSG_SETUP};
	char boot_id[BOOT_ID_LEN + 1];
	struct error e;

	if (identity_boot_id(boot_id, &e) == -1)
		fatalx("%s", e.text);
	m.setup = (struct msg_setup){.protocol = PROTOCOL_VERSION,
	    .role = ROLE_LEDGER,
	    .generation = 1,
	    .supervisor_pid = getpid(),
	    .uid = geteuid(),
	    .gid = getegid(),
	    .state_dir = dir,
	    .run_id = RUN_ID,
	    .boot_id = boot_id,
	    .attempt = "",
	    .base_url = "http://127.0.0.1:1",
	    .user_agent = "bench"};
	peer_notice(bench.child, &m);
}

static pid_t
spawn(const char *program, int fd)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	/* Beyond the reach of close-on-exec, and nothing else open. */
	if (dup2(fd, 3) == -1)
		_exit(1);
	if (fd == 3)
		(void)fcntl(3, F_SETFD, 0);
	(void)execl(program, program, (char *)NULL);
	_exit(1);
}

/* Start it, wait for READY, give it a link to this intake. */
static pid_t
ledger_start(const char *program, const char *dir)
{
	struct msg m = {.type = MSG_LINK};
	int up[2], link[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, up) == -1 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) == -1)
		fatal("socketpair");
	pid = spawn(program, up[1]);
	(void)close(up[1]);
	bench.child = peer_new(
	    bench.base, ROLE_SUPERVISOR, ROLE_LEDGER, "", &child_ops, NULL);
	peer_attach(bench.child, up[0], 1);
	send_setup(dir);
	while (!bench.is_ready)
		(void)event_base_dispatch(bench.base);
	m.link = (struct msg_link){ROLE_INTAKE, 1, "", link[1]};
	peer_notice(bench.child, &m);
	bench.asked = peer_new(
	    bench.base, ROLE_INTAKE, ROLE_LEDGER, "", &intake_ops, NULL);
	peer_attach(bench.asked, link[0], 1);
	return pid;
}

/* ---- intake's part ----------------------------------------------------- */

static void on_answer(struct peer *peer, struct msg *reply, void *arg);

static void
send_record(void)
{
	struct msg m = {.type = MSG_RECORD};
	size_t i = bench.sent++;

	m.record = (struct msg_record){.event_id = ++bench.next_id,
	    .lane = "poll",
	    .event_type = "comment.created",
	    .kind = "comment_created",
	    .action = "created",
	    .bucket_id = 48699913,
	    .creator_id = 26909558,
	    .recording_id = 1000001,
	    .created_at = "2026-01-05T09:00:00.000000000Z"};
	bench.began_us[i] = now_us();
	(void)peer_request(bench.asked, &m, on_answer, (void *)(uintptr_t)i);
}

static void
on_answer(struct peer *peer, struct msg *reply, void *arg)
{
	size_t i = (size_t)(uintptr_t)arg;

	if (reply->type != MSG_RECORDED)
		fatalx("RECORD: %s", reply->failed.text);
	bench.took_us[i] = now_us() - bench.began_us[i];
	if (++bench.answered == bench.wanted)
		(void)event_base_loopbreak(bench.base);
	else if (bench.sent < bench.wanted)
		send_record();
}

static int
by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void
measure(const char *name, size_t in_flight, size_t count, const char *after)
{
	double began;

	bench.sent = bench.answered = 0;
	bench.wanted = count;
	bench.took_us = xcalloc(count, sizeof(double));
	bench.began_us = xcalloc(count, sizeof(double));
	began = now_us();
	while (bench.sent < in_flight)
		send_record();
	while (bench.answered < count)
		(void)event_base_dispatch(bench.base);
	began = now_us() - began;
	qsort(bench.took_us, count, sizeof(double), by_size);
	(void)printf("\"%s\":{\"in_flight\":%zu,\"writes\":%zu,"
		     "\"per_second\":%.0f,\"p50_us\":%.0f,\"p99_us\":%.0f}%s",
	    name, in_flight, count, (double)count / began * 1e6,
	    bench.took_us[count / 2], bench.took_us[count * 99 / 100], after);
	free(bench.took_us);
	free(bench.began_us);
}

static void
dir_remove(const char *dir)
{
	static const char *const names[] = {
	    "ledger.db", "ledger.db-wal", "ledger.db-shm"};
	char path[512];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path);
	}
	(void)rmdir(dir);
}

int
main(int argc, char **argv)
{
	struct msg stop = {.type = MSG_STOP};
	char dir[256];
	pid_t pid;

	if (argc < 2)
		fatalx("usage: bench_ledger CONNECTD-LEDGER [DIRECTORY]");
	log_init("bench_ledger", LOG_LEVEL_INFO);
	(void)snprintf(dir, sizeof(dir), "%s/bench_ledger.XXXXXX",
	    argc > 2 ? argv[2] : "/var/tmp");
	if (mkdtemp(dir) == NULL)
		fatal("%s", dir);
	bench.base = event_base_new();
	pid = ledger_start(argv[1], dir);
	(void)printf("{\"bench\":\"ledger\",");
	measure("alone", 1, 4000, ",");
	measure("sixteen", 16, 40000, ",");
	measure("window", PEER_WINDOW, 80000, "}\n");
	peer_notice(bench.child, &stop);
	(void)link_flush(peer_link(bench.child));
	(void)waitpid(pid, NULL, 0);
	dir_remove(dir);
	return 0;
}
