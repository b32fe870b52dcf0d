/*
 * The two directories of an attempt. Its session directory, the supervisor's
 * own below the run-time directory, holds the task's socket and, until the
 * agent has read it, the MCP declaration: the worker may pass and read, but
 * not write. Its temp directory is the worker's and lies elsewhere (design 5,
 * steps 4 and 5). The first has the first twelve digits of the attempt's id as
 * its name, so that a socket's path stays short; the other "connectd-", eight
 * digits of the boot id, "-" and the same twelve, so that what no process of
 * this boot can be using is known by its name.
 *
 * Session directories lie in one that is the instance's, called "s-" and eight
 * digits of its state directory's SHA-256: when a profile's account, agent or
 * state directory is changed, another instance gets the same run-time
 * directory, and its ledger does not know whose processes live still.
 */
#ifndef SUPERVISOR_SESSION_H
#define SUPERVISOR_SESSION_H

#include "supervisor/supervisor.h"

#define SESSION_ROOT_PREFIX "s-"
#define SESSION_ROOT_DIGITS 8 /* of the state directory's SHA-256 */
#define SESSION_NAME_LEN 12
#define SESSION_BOOT_LEN 8
#define SESSION_TEMP_PREFIX "connectd-"
#define SESSION_TEMP_LEN                                          \
	(sizeof(SESSION_TEMP_PREFIX) - 1 + SESSION_BOOT_LEN + 1 + \
	    SESSION_NAME_LEN)

/* Of a session, or of the temp directory of one. */
typedef char session_name[SESSION_TEMP_LEN + 1];

/* Where all sessions of an instance are. */
struct sessions {
	char *root;   /* <runtime_dir>/s-<digits> */
	int root_fd;  /* O_PATH */
	char *cache;  /* of the temp directories */
	int cache_fd; /* O_PATH */
	char boot[SESSION_BOOT_LEN + 1];
	const struct account *account; /* the workers'; borrowed */
	bool is_root;
	session_name *left; /* by an earlier run, and nobody's for certain */
	size_t left_count;
};

struct session {
	const struct sessions *home;
	char name[SESSION_NAME_LEN + 1];
	char *dir, *socket, *declaration, *temp; /* paths */
};

/*
 * Make or check the directories above all sessions, and that the worker's
 * account can enter them. STATE_DIR, an absolute path, is the instance's.
 * ACCOUNT is borrowed for the life of the result.
 */
struct sessions *sessions_open(const struct paths *paths, const char *state_dir,
    const struct account *account, bool is_root,
    const char boot_id[static BOOT_ID_LEN + 1], struct error *e);
void sessions_close(struct sessions *s);
/*
 * What an earlier run of this instance left, before this one makes any: every
 * session directory with its temp directory, and each temp directory of the
 * worker's account that is of another boot. It is removed at once, by
 * sessions_sweep(), when the attempts of earlier runs are known to be over but
 * for those held meanwhile (dispatch.md 9 and trap 17): a process that runs
 * still may be using those.
 */
void sessions_collect(struct sessions *s);
void sessions_sweep(struct sessions *s);
/*
 * Of an attempt of an earlier run (28 characters): something of it may run, so
 * its directories stay, here or for the next start to collect.
 */
void sessions_hold(struct sessions *s, const char *attempt);
/* Nothing of it runs any more: what was held is removed, the rest swept. */
void sessions_release(struct sessions *s, const char *attempt);

/*
 * Of an attempt (28 characters). A stale directory of its name is an error; a
 * root that vanished is made again, and the parent of temp directories, which
 * is not ours to make, opened and checked again.
 */
struct session *session_new(
    struct sessions *s, const char *attempt, struct error *e);
/* The listening socket, connectable by the worker's account only; or -1. */
int session_listen(const struct session *s, struct error *e);
/* Write the declaration for the worker to read; it must not be there yet. */
int session_declare(const struct session *s, const char *text, struct error *e);
/* Was it there? */
bool session_drop_declaration(const struct session *s);
/* Remove both directories, in a process of its own; frees S. */
void session_remove(struct session *s);

bool session_is_name(const char *name);
/* The temp directory's, in this boot, of the session NAME. */
void session_temp_name(
    const struct sessions *s, const char *name, session_name out);

/* ---- clean.c ------------------------------------------------------------ */

/*
 * Remove in a forked child the two directories of each name that is a
 * session's, and the one of each that is a temp directory's: the worker's with
 * the worker's ids, without following links, in bounded time. A session's
 * stays, empty, while its temp directory does: the next start tries again.
 */
void clean_start(
    const struct sessions *s, const session_name *names, size_t count);

#endif
