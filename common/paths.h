/*
 * Where files are (design 7) and whether they are private enough
 * (admission.md 5.7, ledger.md 5). Every path comes from path_resolve().
 */
#ifndef COMMON_PATHS_H
#define COMMON_PATHS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

#define SOCKET_PATH_MAX 107
/* Of ledger.sock in the run-time directory; not longer than control.sock. */
#define PATH_LEDGER_SOCKET "ledger.sock"

struct paths {
	char *config_dir;  /* …/connectd/<profile> */
	char *state_root;  /* …/basecamp/connect */
	char *runtime_dir; /* …/connectd/<profile> */
	char *control_socket, *ledger_socket;
	char *cache_dir; /* parent of workers' temp directories */
	/* The part of each that must be there; below it all is ours. */
	char *state_given, *runtime_given;
};

/* Letters, digits, '-' and '_', 1 to 64 of them. */
bool path_profile_ok(const char *profile);

/*
 * From the environment and the effective uid, the first that is set, as
 * design 7 lists; an empty variable is not set. No file is touched. Fails on
 * a relative variable, a missing home, or a socket path over its bound, naming
 * the variable and what it holds. (XDG has a relative one ignored; then what
 * the operator wrote would quietly lie elsewhere.) Free with path_free(), also
 * after a failure.
 */
int path_resolve(const char *profile, struct paths *out, struct error *e);
void path_free(struct paths *p);

/*
 * Where profiles have their places: a profile is a directory in DIR that holds
 * FILE. First those that path_resolve() finds, then those of a connector that
 * the system runs, where they are others.
 */
#define PATH_HOMES_MOST 4
struct path_homes {
	struct path_home {
		char *dir;
		const char *file;
		bool is_system; /* only root can have made it */
	} list[PATH_HOMES_MOST];
	size_t count;
};

/* As path_resolve(). Free with path_homes_free(), also after a failure. */
int path_homes(struct path_homes *out, struct error *e);
void path_homes_free(struct path_homes *h);
/* The control socket that a connector of the system has for PROFILE. */
char *path_system_socket(const char *profile);

/*
 * The canonical state directory of an account and agent, and back
 * (ledger.md 5 "Canonical state directory"). path_state_check() takes any
 * spelling of a directory and says whether it is the one of ACCOUNT under
 * ROOT; AGENT receives the id in its name. The caller goes on with
 * path_state_dir()'s name. The text of a failure holds one of the words
 * "elsewhere", "misnamed" and "other account".
 */
char *path_state_dir(const char *root, int64_t account, int64_t agent);
int path_state_check(const char *root, const char *dir, int64_t account,
    int64_t *agent, struct error *e);

/*
 * The chain above DIR (absolute; not DIR itself), as written and wherever
 * links of it lead: every component root's or OWNER's, every directory not
 * writable by group or others unless sticky. A missing one is refused.
 */
int path_ancestors_check(const char *dir, uid_t owner, struct error *e);
/* May UID, of the one group GID, walk down to DIR? By mode and owner. */
int path_traversable_check(
    const char *dir, uid_t uid, gid_t gid, struct error *e);
/*
 * Make DIR with MODE, owned by UID/GID, if only its last component is missing;
 * a directory that is there must be a real one, UID's, with no bit of
 * FORBIDDEN set. (Left empty, without its owner or mode, by a start that was
 * interrupted, it is made anew.) Returns a descriptor on it, of
 * O_PATH|O_DIRECTORY, or -1.
 */
int path_private_dir(const char *dir, mode_t mode, mode_t forbidden, uid_t uid,
    gid_t gid, struct error *e);
/*
 * The same for each missing component below ROOT, which must exist, down to
 * DIR at or below it; those that are there may not be writable by others.
 */
int path_private_dirs(const char *root, const char *dir, mode_t mode, uid_t uid,
    gid_t gid, struct error *e);

/*
 * Open a file for reading as admission.md 5.7 says (no-follow, regular, UID's
 * own, none of FORBIDDEN in its mode) and read it whole, at most MOST bytes.
 * *OUT is the caller's, NUL-terminated. ENOENT is in e->code when it is not
 * there.
 */
int path_read_private(const char *path, uid_t uid, mode_t forbidden,
    size_t most, char **out, size_t *len, struct error *e);

/*
 * DIR as an absolute path without "//", ".", ".." and a trailing slash, by
 * its text alone; a relative one is taken from the working directory. NULL
 * with errno when that is not known. The caller frees it.
 */
char *path_clean(const char *dir);
/* An absolute path without "//", ".", ".." or a trailing slash? */
bool path_is_clean(const char *path);
/* Is PATH at or below DIR (both clean)? */
bool path_contains(const char *dir, const char *path);

#endif
