/*
 * What a long past costs at a start: the real connectd-ledger from its fork to
 * READY, with an empty file and with a million events in it, as years leave
 * them (decided and done, but for the newest thousand); and a write on top.
 *
 *	bench_open CONNECTD-LEDGER [DIRECTORY]
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/log.h"
#include "tests/nursery/nursery.h"
#include "tests/bench/samples.h"

#define STARTS 20
#define WRITES 2000
#define EVENTS 1000000

static char dir[256], path[512];

/* ---- the ledger ---------------------------------------------------------- */

static const peer_handler no_handlers[MSG_COUNT];
static const struct peer_ops intake_ops = {.handlers = no_handlers};
static struct samples *took;
static double began;

static void
ledger_start(struct nursery *n, struct event_base *base, char *program)
{
	nursery_start(n, base, ROLE_LEDGER, (char *[]){program, NULL}, -1, dir);
	nursery_configure(n);
	nursery_await_ready(n);
}

static void
measure_open(struct event_base *base, char *program, const char *row)
{
	struct samples opened = {0};
	struct nursery n;
	double from;
	int i;

	for (i = 0; i < STARTS; i++) {
		from = now_us();
		ledger_start(&n, base, program);
		samples_add(&opened, now_us() - from);
		nursery_end(&n);
	}
	samples_row(&opened, row, 0);
	samples_clear(&opened);
}

static void
on_recorded(struct peer *peer, struct msg *reply, void *arg)
{
	if (reply->type != MSG_RECORDED)
		fatalx("RECORD: %s", reply->failed.text);
	samples_add(took, now_us() - began);
	(void)event_base_loopbreak(arg);
}

static void
write_one(struct peer *ledger, struct event_base *base, int64_t id)
{
	struct msg m = {.type = MSG_RECORD};

	m.record = (struct msg_record){.event_id = id,
	    .lane = "poll",
	    .event_type = "comment.created",
	    .kind = "comment_created",
	    .action = "created",
	    .bucket_id = 48699913,
	    .creator_id = 26909558,
	    .recording_id = 1000001,
	    .created_at = "2026-01-05T09:00:00.000000000Z"};
	began = now_us();
	(void)peer_request(ledger, &m, on_recorded, base);
	(void)event_base_dispatch(base);
}

static void
measure_writes(struct event_base *base, char *program, const char *row)
{
	struct samples writes = {0};
	struct peer *ledger;
	struct nursery n;
	int64_t id;

	took = &writes;
	ledger_start(&n, base, program);
	ledger = nursery_link(&n, ROLE_INTAKE, &intake_ops, NULL);
	for (id = EVENTS + 1; id <= EVENTS + WRITES; id++)
		write_one(ledger, base, id);
	samples_row(&writes, row, 150);
	samples_clear(&writes);
	nursery_end(&n);
	peer_free(ledger);
}

/* ---- its past ------------------------------------------------------------ */

static const char past_sql[] =
    "PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; BEGIN;"
    "WITH RECURSIVE n(id) AS"
    " (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 1000000)"
    " INSERT INTO events (id, state, reason, lane, event_type, kind, action,"
    " bucket_id, creator_id, recording_id, created_at, seen_at, updated_at,"
    " decided_at, content_dropped)"
    " SELECT id, CASE WHEN id > 999000 THEN 'seen' WHEN id % 10 = 0"
    " THEN 'completed' ELSE 'discarded' END,"
    " CASE WHEN id > 999000 OR id % 10 = 0 THEN '' ELSE 'not_mentioned' END,"
    " 'poll', 'comment.created', 'comment_created', 'created', 48699913,"
    " 26909558, 1000000 + id, t, t, t,"
    " CASE WHEN id > 999000 THEN NULL ELSE t END, 0 FROM (SELECT id,"
    " printf('2026-01-%02dT%02d:%02d:%02d.000000000Z', 1 + id / 86400,"
    " id / 3600 % 24, id / 60 % 60, id % 60) AS t FROM n);"
    "COMMIT";

/* On the disk as well, or the first checkpoint would pay for it. */
static void
past_write(void)
{
	sqlite3 *db;
	int fd;

	if (sqlite3_open(path, &db) != SQLITE_OK ||
	    sqlite3_exec(db, past_sql, NULL, NULL, NULL) != SQLITE_OK)
		fatalx("%s: %s", path, sqlite3_errmsg(db));
	(void)sqlite3_close(db);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd == -1 || fsync(fd) == -1)
		fatal("%s", path);
	(void)close(fd);
}

static void
dir_remove(void)
{
	static const char *const ends[] = {"", "-wal", "-shm"};
	char name[520];
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		(void)snprintf(name, sizeof(name), "%s%s", path, ends[i]);
		(void)unlink(name);
	}
	(void)rmdir(dir);
}

int
main(int argc, char **argv)
{
	struct event_base *base;

	if (argc < 2)
		fatalx("usage: bench_open CONNECTD-LEDGER [DIRECTORY]");
	log_init("bench_open", LOG_LEVEL_WARN);
	(void)snprintf(dir, sizeof(dir), "%s/bench_open.XXXXXX",
	    argc > 2 ? argv[2] : "/var/tmp");
	if (mkdtemp(dir) == NULL)
		fatal("%s", dir);
	(void)snprintf(path, sizeof(path), "%s/ledger.db", dir);
	base = nursery_base();
	measure_open(base, argv[1], "open_empty");
	past_write();
	measure_open(base, argv[1], "open_million");
	measure_writes(base, argv[1], "write_alone_million");
	event_base_free(base);
	dir_remove();
	return 0;
}
