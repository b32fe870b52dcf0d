#include "tests/crash/ledger_life.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "tests/unit/repeats.h"

static struct {
	struct event_base *base;
	const char *killat;
	char *argv[2]; /* of a ledger */
	char folder[32];
} self;

void
life_init(const char *killat, const char *ledger)
{
	self.base = nursery_base();
	self.killat = killat;
	self.argv[0] = xstrdup(ledger);
	(void)snprintf(self.folder, sizeof(self.folder), "/tmp/kill.XXXXXX");
	if (mkdtemp(self.folder) == NULL)
		fatal("%s", self.folder);
}

static int
entry_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

void
life_done(void)
{
	if (nftw(self.folder, entry_remove, 8, FTW_DEPTH | FTW_PHYS) == -1)
		fatal("%s", self.folder);
	event_base_free(self.base);
	free(self.argv[0]);
}

struct event_base *
life_base(void)
{
	return self.base;
}

const char *
life_killat(void)
{
	return self.killat;
}

char *const *
life_argv(void)
{
	return self.argv;
}

/* ---- a life ------------------------------------------------------------- */

static void
on_birth(void *arg)
{
	struct life *life = arg;

	if (life->tracer != NULL)
		tracer_birth(life->tracer);
}

static void
on_line(const char *text, void *arg)
{
	((struct life *)arg)->lines++;
}

static void
on_gone(void *arg)
{
	struct life *life = arg;

	if (!life->ledger.is_ready)
		fatalx("the ledger did not start");
	life->is_gone = true;
}

static const struct nursery_ops ledger_ops = {on_birth, on_line, on_gone};

static void
on_notice(struct peer *peer, struct msg *m, void *arg)
{
	msg_free(m);
}

const struct peer_ops *
life_asker(void)
{
	static peer_handler handlers[MSG_COUNT];
	static const struct peer_ops ops = {.handlers = handlers};
	int type;

	for (type = 0; type < MSG_COUNT; type++) {
		if (msg_info(type) != NULL &&
		    (msg_info(type)->from & 1u << ROLE_LEDGER) != 0 &&
		    msg_info(type)->kind == MSG_NOTICE)
			handlers[type] = on_notice;
	}
	return &ops;
}

struct msg *
msg_copy(struct msg *m)
{
	struct frame frame;
	struct error e;
	struct msg *out;

	if (frame_encode(m, &frame, &e) == -1)
		fatalx("%s", e.text);
	out =
	    frame_decode(frame.bytes, frame.len, frame.fds, frame.fd_count, &e);
	if (out == NULL)
		fatalx("%s", e.text);
	frame.fd_count = 0;
	frame_free(&frame);
	return out;
}

static void
on_answer(struct peer *peer, struct msg *reply, void *arg)
{
	struct life *life = arg;

	life->reply = msg_copy(reply);
	(void)event_base_loopbreak(self.base);
}

void
life_ask(struct life *life, struct msg *m)
{
	struct peer *peer =
	    life->peer == NULL ? life->ledger.child : life->peer;

	msg_free(life->reply);
	life->reply = NULL;
	(void)peer_request(peer, m, on_answer, life);
	while (life->reply == NULL && !life->is_gone)
		(void)event_base_dispatch(self.base);
}

struct config *
life_config(void)
{
	struct config *c = config_new();

	c->generation = 1;
	c->readable = true;
	c->account_id = 999;
	c->agent_id = AGENT;
	c->operator_id = OPERATOR;
	c->concurrency = 1;
	c->deadline_ms = 60000;
	(void)snprintf(c->trust_mode, sizeof(c->trust_mode), "operator");
	(void)snprintf(c->driver, sizeof(c->driver), "claude");
	(void)snprintf(c->profile, sizeof(c->profile), "crash");
	config_route_add(c, PROJECT, ROUTE, "web", false);
	config_route_add(c, OTHER_PROJECT, OTHER_ROUTE, "", false);
	return c;
}

void
life_begin(struct life *life, const char *dir, enum role_id from,
    const char *attempt, struct tracer *tracer)
{
	struct config *config = life_config();
	struct msg ping = {.type = MSG_PING};

	*life = (struct life){
	    .ledger = {.ops = &ledger_ops, .arg = life}, .tracer = tracer};
	nursery_start(
	    &life->ledger, self.base, ROLE_LEDGER, self.argv, -1, dir);
	nursery_tell_config(&life->ledger, config);
	config_free(config);
	if (from != ROLE_SUPERVISOR) {
		life->peer = peer_new(
		    self.base, from, ROLE_LEDGER, "", life_asker(), life);
		nursery_relink(&life->ledger, from, attempt, life->peer);
	}
	nursery_await_ready(&life->ledger);
	life_ask(life, &ping);
	if (life->reply == NULL)
		fatalx("the ledger did not live to answer");
}

int
life_end(struct life *life)
{
	struct msg m = {.type = MSG_STOP};
	int status;

	if (!life->is_gone)
		peer_notice(life->ledger.child, &m);
	while (!life->is_gone)
		(void)event_base_dispatch(self.base);
	status = nursery_bury(&life->ledger);
	if (life->peer != NULL)
		peer_free(life->peer);
	msg_free(life->reply);
	return status;
}

/* ---- directories -------------------------------------------------------- */

#define COPY_MOST (1 << 30)

static const char *const ledger_files[] = {"ledger.db", "ledger.db-wal"};

static void
dir_clear(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	if (d == NULL)
		fatal("%s", dir);
	while ((entry = readdir(d)) != NULL) {
		if (unlinkat(dirfd(d), entry->d_name, 0) == -1 &&
		    errno != EISDIR)
			fatal("%s/%s", dir, entry->d_name);
	}
	(void)closedir(d);
}

void
dir_make(const char *name, char path[static DIR_SIZE])
{
	if (snprintf(path, DIR_SIZE, "%s/%s", self.folder, name) >= DIR_SIZE)
		fatalx("%s: too long", name);
	if (mkdir(path, 0700) == 0)
		return;
	if (errno != EEXIST)
		fatal("%s", path);
	dir_clear(path);
}

/* Nothing where there is no such file. */
static void
file_copy(const char *from, const char *to, const char *name)
{
	char source[256], target[256];
	int in, out;
	ssize_t n;

	(void)snprintf(source, sizeof(source), "%s/%s", from, name);
	(void)snprintf(target, sizeof(target), "%s/%s", to, name);
	in = open(source, O_RDONLY | O_CLOEXEC);
	if (in == -1 && errno == ENOENT)
		return;
	out = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (in == -1 || out == -1)
		fatal("%s", source);
	while ((n = copy_file_range(in, NULL, out, NULL, COPY_MOST, 0)) > 0)
		continue;
	if (n == -1)
		fatal("%s", target);
	(void)close(in);
	(void)close(out);
}

void
dir_copy(const char *from, const char *to)
{
	size_t i;

	dir_clear(to);
	for (i = 0; i < sizeof(ledger_files) / sizeof(ledger_files[0]); i++)
		file_copy(from, to, ledger_files[i]);
}

/* 2026-01-05T09:00:00.000000000Z: nothing else looks like that. */
static bool
is_stamp(const char *text)
{
	static const char shape[] = "dddd-dd-ddTdd:dd:dd.dddddddddZ";
	size_t i;

	for (i = 0; i < CLOCK_STAMP_LEN; i++) {
		if (shape[i] == 'd' ? !isdigit((unsigned char)text[i])
				    : text[i] != shape[i])
			return false;
	}
	return true;
}

void
stamps_hide(char *text)
{
	for (; *text != '\0'; text++) {
		if (is_stamp(text))
			memset(text, '#', CLOCK_STAMP_LEN);
	}
}

char *
dir_dump(const char *dir, const char *rewritten)
{
	char look[DIR_SIZE], path[DIR_SIZE + 16], *left_out, *text;
	sqlite3 *db;

	dir_make("look", look);
	dir_copy(dir, look);
	(void)snprintf(path, sizeof(path), "%s/ledger.db", look);
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) !=
	    SQLITE_OK)
		fatalx("%s: %s", path, sqlite3_errmsg(db));
	(void)xasprintf(
	    &left_out, "token_sha256 %s", rewritten == NULL ? "" : rewritten);
	text = repeat_dump(db, left_out);
	free(left_out);
	(void)sqlite3_close(db);
	stamps_hide(text);
	return text;
}
