#include <sys/file.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/lock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/instance.h"

#define NOTE_MAX 4096
#define TRY_AGAIN_MS 20

/* What is read of the note here. */
struct holder {
	struct identity identity;
	char started_at[CLOCK_STAMP_SIZE];
};

/* ---- directories --------------------------------------------------------- */

/*
 * As root other users' processes pass through (the roles', the workers'), but
 * cannot list; as a person nobody else has anything to do here.
 */
static int
directory_make(const struct supervisor *sv, const char *given, const char *dir,
    struct error *e)
{
	char *below;
	int fd, rc;

	/* Nothing is made where others could put something in its place. */
	(void)xasprintf(&below, "%s/.", given);
	rc = path_ancestors_check(below, geteuid(), e);
	free(below);
	if (rc == -1)
		return -1;
	fd = path_private_dirs(
	    given, dir, sv->is_root ? 0711 : 0700, geteuid(), getegid(), e);
	if (fd == -1)
		return -1;
	(void)close(fd);
	return 0;
}

int
instance_directories(struct supervisor *sv, struct error *e)
{
	const struct config *c = sv->settings->config;
	const struct role_ids *ids = &sv->role_ids[ROLE_LEDGER];
	int fd;

	if (directory_make(
		sv, sv->paths.state_given, sv->paths.state_root, e) == -1)
		return -1;
	sv->state_dir =
	    path_state_dir(sv->paths.state_root, c->account_id, c->agent_id);
	fd = path_private_dir(sv->state_dir, 0700, 077, ids->uid, ids->gid, e);
	if (fd == -1)
		return -1;
	(void)close(fd);
	if (path_ancestors_check(sv->state_dir, geteuid(), e) == -1 ||
	    path_traversable_check(sv->state_dir, ids->uid, ids->gid, e) == -1)
		return -1;
	return instance_runtime_directory(sv, e);
}

int
instance_runtime_directory(const struct supervisor *sv, struct error *e)
{
	return directory_make(
	    sv, sv->paths.runtime_given, sv->paths.runtime_dir, e);
}

/* ---- the lock ------------------------------------------------------------ */

/* The lock's own file, or with a suffix the note beside it. */
static char *
instance_path(const struct supervisor *sv, const char *suffix)
{
	const struct config *c = sv->settings->config;
	char *lock =
	    lock_path(sv->paths.state_root, c->account_id, c->agent_id);
	char *path;

	(void)xasprintf(&path, "%s%s", lock, suffix);
	free(lock);
	return path;
}

/* False when there is no note, or none that can be read. */
static bool
holder_read(const struct supervisor *sv, struct holder *h)
{
	const struct json_rules rules = {
	    .max_bytes = NOTE_MAX, .max_depth = 2, .max_members = 32};
	char *path = instance_path(sv, ".json"), *text;
	struct json_text started, boot;
	int64_t pid = 0;
	struct error e;
	json_t *note;
	size_t len;
	bool ok;

	memset(h, 0, sizeof(*h));
	if (path_read_private(
		path, geteuid(), 077, NOTE_MAX, &text, &len, &e) == -1) {
		free(path);
		return false;
	}
	free(path);
	note = json_read(text, len, &rules, &e);
	free(text);
	ok = note != NULL &&
	    json_member_id(note, "pid", JSON_REQUIRED, &pid, &e) == 0 &&
	    json_member_int(note, "started_ticks", JSON_REQUIRED,
		&h->identity.started_ticks, &e) == 0 &&
	    json_member_string(
		note, "started_at", JSON_REQUIRED, &started, &e) == 0 &&
	    json_member_string(note, "boot_id", JSON_REQUIRED, &boot, &e) == 0;
	if (ok) {
		h->identity.pid = (pid_t)pid;
		(void)snprintf(h->identity.boot_id, sizeof(h->identity.boot_id),
		    "%s", boot.bytes);
		(void)snprintf(
		    h->started_at, sizeof(h->started_at), "%s", started.bytes);
	}
	json_decref(note);
	return ok;
}

static int
held_error(const struct holder *h, bool known, struct error *e)
{
	if (known)
		(void)error_set(e,
		    "a connector already runs for this agent: "
		    "pid %ld, since %s",
		    (long)h->identity.pid, log_safe(h->started_at));
	else
		(void)error_set(e,
		    "a connector already runs for this agent: "
		    "another process holds its lock");
	e->code = EWOULDBLOCK;
	return -1;
}

/*
 * A supervisor that lives has the lock. One that is dead has left children, who
 * soon follow it; and who has it and has written no note, of which nothing is
 * known, either writes one now or has died before that.
 */
static bool
may_be_left(const struct holder *h, bool known, int64_t waited_ms)
{
	if (!known)
		return waited_ms < INSTANCE_NOTE_MS;
	return identity_check(&h->identity) == IDENTITY_GONE &&
	    waited_ms < INSTANCE_WAIT_MS;
}

/* Until the deadline, for the child of a dead supervisor. */
static int
lock_wait(const struct supervisor *sv, int fd, struct error *e)
{
	const struct timespec pause = {0, TRY_AGAIN_MS * 1000000};
	int64_t since = clock_monotonic_ms();
	bool known, told = false;
	struct holder h;

	while (flock(fd, LOCK_EX | LOCK_NB) == -1) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return error_errno(e, "flock");
		known = holder_read(sv, &h);
		if (!may_be_left(&h, known, clock_monotonic_ms() - since))
			return held_error(&h, known, e);
		if (known && !told)
			log_info("waiting for what is left of the connector "
				 "that was pid %ld",
			    (long)h.identity.pid);
		told |= known;
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

int
instance_lock(struct supervisor *sv, struct error *e)
{
	char *path = instance_path(sv, "");
	int rc = -1;

	sv->lock_fd = lock_open(path, e);
	if (sv->lock_fd != -1 && lock_wait(sv, sv->lock_fd, e) == 0 &&
	    lock_check(sv->lock_fd, path, e) == 0)
		rc = 0;
	free(path);
	return rc;
}

static void
note_text(
    const struct supervisor *sv, const struct identity *self, struct buffer *b)
{
	const struct config *c = sv->settings->config;
	const char *dir = sv->paths.runtime_dir;
	char stamp[CLOCK_STAMP_SIZE];

	clock_stamp(stamp);
	buffer_printf(b,
	    "{\"pid\":%ld,\"started_at\":\"%s\",\"account_id\":%lld,"
	    "\"agent_person_id\":%lld,\"started_ticks\":%lld,"
	    "\"boot_id\":\"%s\",\"runtime_dir\":",
	    (long)self->pid, stamp, (long long)c->account_id,
	    (long long)c->agent_id, (long long)self->started_ticks,
	    self->boot_id);
	json_write_string(b, dir, strlen(dir));
	buffer_add_text(b, "}\n");
}

void
instance_note(const struct supervisor *sv)
{
	char *path = instance_path(sv, ".json");
	struct buffer b = {0};
	struct identity self;
	struct error e;
	int fd = -1;

	if (identity_read(getpid(), &self, &e) == 0)
		fd = open(path,
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK |
			O_CLOEXEC,
		    0600);
	if (fd == -1) {
		log_warnx("%s: not written", path);
	} else {
		note_text(sv, &self, &b);
		if (write(fd, b.bytes, b.len) != (ssize_t)b.len)
			log_warn("%s", path);
		buffer_free(&b);
		(void)close(fd);
	}
	free(path);
}

void
instance_release(const struct supervisor *sv)
{
	char *path = instance_path(sv, ".json");

	(void)unlink(path);
	free(path);
}
