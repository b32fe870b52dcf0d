/*
 * What an acknowledged write costs: the real connectd-ledger, behind its walls
 * and its socket, with the whole schema. RECORDs go out a given number at a
 * time; each counts from its sending to its answer, which comes after the
 * COMMIT.
 *
 *	bench_ledger CONNECTD-LEDGER [DIRECTORY]
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "tests/nursery/nursery.h"
#include "tests/bench/samples.h"

static struct {
	struct event_base *base;
	struct peer *ledger; /* as intake sees it */
	int64_t next_id;
	size_t sent, answered, wanted;
	double *began_us;
	struct samples took;
} bench;

/* ---- intake's part ------------------------------------------------------ */

static const peer_handler no_handlers[MSG_COUNT];
static const struct peer_ops intake_ops = {.handlers = no_handlers};

static void on_answer(struct peer *peer, struct msg *reply, void *arg);

static void
send_record(void)
{
	struct msg m = {.type = MSG_RECORD};
	double *began_us = &bench.began_us[bench.sent++];

	m.record = (struct msg_record){.event_id = ++bench.next_id,
	    .lane = "poll",
	    .event_type = "comment.created",
	    .kind = "comment_created",
	    .action = "created",
	    .bucket_id = 48699913,
	    .creator_id = 26909558,
	    .recording_id = 1000001,
	    .created_at = "2026-01-05T09:00:00.000000000Z"};
	*began_us = now_us();
	(void)peer_request(bench.ledger, &m, on_answer, began_us);
}

static void
on_answer(struct peer *peer, struct msg *reply, void *arg)
{
	(void)peer;
	if (reply->type != MSG_RECORDED)
		fatalx("RECORD: %s", reply->failed.text);
	samples_add(&bench.took, now_us() - *(double *)arg);
	if (++bench.answered == bench.wanted)
		(void)event_base_loopbreak(bench.base);
	else if (bench.sent < bench.wanted)
		send_record();
}

/* COUNT writes, so many at once; how many a second. */
static double
run(size_t in_flight, size_t count)
{
	double began;

	samples_clear(&bench.took);
	bench.sent = bench.answered = 0;
	bench.wanted = count;
	bench.began_us = xcalloc(count, sizeof(double));
	began = now_us();
	while (bench.sent < in_flight)
		send_record();
	while (bench.answered < count)
		(void)event_base_dispatch(bench.base);
	began = now_us() - began;
	free(bench.began_us);
	return (double)count / began * 1e6;
}

static void
measure(void)
{
	double per_s;

	(void)run(1, 1000);
	(void)run(1, 4000);
	samples_row(&bench.took, "write_alone", 150);
	per_s = run(16, 40000);
	figure_row("write_16_in_flight", "per_s", per_s, 25000, 40000);
	samples_row(&bench.took, "write_16_in_flight_each", 0);
	per_s = run(PEER_WINDOW, 80000);
	figure_row("write_window", "per_s", per_s, 0, 80000);
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
	struct nursery ledger = {0};
	char dir[256];

	if (argc < 2)
		fatalx("usage: bench_ledger CONNECTD-LEDGER [DIRECTORY]");
	log_init("bench_ledger", LOG_LEVEL_WARN);
	(void)snprintf(dir, sizeof(dir), "%s/bench_ledger.XXXXXX",
	    argc > 2 ? argv[2] : "/var/tmp");
	if (mkdtemp(dir) == NULL)
		fatal("%s", dir);
	bench.base = nursery_base();
	nursery_start(&ledger, bench.base, ROLE_LEDGER,
	    (char *[]){argv[1], NULL}, -1, dir);
	nursery_configure(&ledger);
	bench.ledger = nursery_link(&ledger, ROLE_INTAKE, &intake_ops, NULL);
	nursery_await_ready(&ledger);
	measure();
	nursery_end(&ledger);
	peer_free(bench.ledger);
	samples_clear(&bench.took);
	event_base_free(bench.base);
	dir_remove(dir);
	return 0;
}
