#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/digest.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/become.h"
#include "supervisor/session.h"

#define SOCKET_NAME "m"
#define DECLARATION_NAME "mcp.json"
#define BACKLOG 16

/* The id's digits begin behind "att_". */
#define ID_DIGITS_AT 4
#define HEX_DIGITS "0123456789abcdef"

/* ---- above the sessions ------------------------------------------------- */

static int
reach_check(const struct sessions *s, const char *dir, struct error *e)
{
	if (!s->is_root || become_can_enter(s->account, dir))
		return 0;
	return error_set(e,
	    "%s: %s, the workers' account, cannot enter it or "
	    "what is above it",
	    log_safe(dir), log_safe(s->account->name));
}

/*
 * Its own or root's, the worker can enter it, and others can at most add to it.
 * The one before, if any, is forgotten.
 */
static int
cache_open(struct sessions *s, struct error *e)
{
	const char *dir = s->cache;
	struct stat st;
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd == -1 || fstat(fd, &st) == -1) {
		(void)error_errno(e, "%s", log_safe(dir));
	} else if (st.st_uid != 0 && st.st_uid != geteuid()) {
		(void)error_set(
		    e, "%s: belongs to uid %u", log_safe(dir), st.st_uid);
	} else if ((st.st_mode & 022) != 0 && (st.st_mode & S_ISVTX) == 0) {
		(void)error_set(e,
		    "%s: others may remove what is in it "
		    "(mode %04o)",
		    log_safe(dir), st.st_mode & 07777);
	} else if (reach_check(s, dir, e) == 0) {
		if (s->cache_fd != -1)
			(void)close(s->cache_fd);
		s->cache_fd = fd;
		return 0;
	}
	if (fd != -1)
		(void)close(fd);
	return -1;
}

/* Made when it is not there; the one before, if any, is forgotten. */
static int
root_open(struct sessions *s, struct error *e)
{
	mode_t mode = s->is_root ? 0711 : 0700;
	int fd = path_private_dir(s->root, mode, 022, geteuid(), getegid(), e);

	if (fd == -1)
		return -1;
	if (s->root_fd != -1)
		(void)close(s->root_fd);
	s->root_fd = fd;
	return 0;
}

/*
 * Lock and ledger are of a state directory, the run-time directory is of a
 * profile: in a part of its own nobody takes another's living for leavings.
 */
static char *
root_path(const struct paths *paths, const char *state_dir)
{
	char digest[DIGEST_HEX_SIZE], *path;

	digest_sha256_hex(state_dir, strlen(state_dir), digest);
	(void)xasprintf(&path, "%s/" SESSION_ROOT_PREFIX "%.*s",
	    paths->runtime_dir, SESSION_ROOT_DIGITS, digest);
	return path;
}

static int
sessions_fill(struct sessions *s, const struct paths *paths,
    const char *state_dir, struct error *e)
{
	s->root = root_path(paths, state_dir);
	s->cache = xstrdup(paths->cache_dir);
	if (strlen(s->root) + 1 + SESSION_NAME_LEN + sizeof("/" SOCKET_NAME) -
		1 >
	    SOCKET_PATH_MAX)
		return error_set(e,
		    "%s: too long for sockets in it: a "
		    "shorter run-time directory is needed",
		    log_safe(s->root));
	if (root_open(s, e) == -1 || reach_check(s, s->root, e) == -1)
		return -1;
	return cache_open(s, e);
}

/* Some kernels say it in capitals. */
static void
boot_set(struct sessions *s, const char *boot_id)
{
	size_t i;

	for (i = 0; i < SESSION_BOOT_LEN; i++) {
		s->boot[i] = '0';
		if (isxdigit((unsigned char)boot_id[i]))
			s->boot[i] = (char)tolower((unsigned char)boot_id[i]);
	}
}

struct sessions *
sessions_open(const struct paths *paths, const char *state_dir,
    const struct account *account, bool is_root,
    const char boot_id[static BOOT_ID_LEN + 1], struct error *e)
{
	struct sessions *s = xcalloc(1, sizeof(*s));

	s->account = account;
	s->is_root = is_root;
	s->root_fd = s->cache_fd = -1;
	boot_set(s, boot_id);
	if (sessions_fill(s, paths, state_dir, e) == 0)
		return s;
	sessions_close(s);
	return NULL;
}

void
sessions_close(struct sessions *s)
{
	if (s == NULL)
		return;
	if (s->root_fd != -1)
		(void)close(s->root_fd);
	if (s->cache_fd != -1)
		(void)close(s->cache_fd);
	free(s->root);
	free(s->cache);
	free(s->left);
	free(s);
}

/* ---- names -------------------------------------------------------------- */

bool
session_is_name(const char *name)
{
	return strlen(name) == SESSION_NAME_LEN &&
	    strspn(name, HEX_DIGITS) == SESSION_NAME_LEN;
}

void
session_temp_name(const struct sessions *s, const char *name, session_name out)
{
	(void)snprintf(out, sizeof(session_name), SESSION_TEMP_PREFIX "%s-%s",
	    s->boot, name);
}

static void
name_of(char name[static SESSION_NAME_LEN + 1], const char *attempt)
{
	memcpy(name, attempt + ID_DIGITS_AT, SESSION_NAME_LEN);
	name[SESSION_NAME_LEN] = '\0';
}

/* ---- what an earlier run left ------------------------------------------- */

/* A name of one of the two forms: it fits. */
static void
left_add(struct sessions *s, const char *name)
{
	s->left = xreallocarray(s->left, s->left_count + 1, sizeof(*s->left));
	memcpy(s->left[s->left_count++], name, strlen(name) + 1);
}

/* Each entry of the directory FD that is LEFT. */
static void
left_collect(struct sessions *s, int fd,
    bool (*is_left)(const struct sessions *s, const char *name))
{
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own == -1 ? NULL : fdopendir(own);
	const struct dirent *entry;

	if (dir == NULL) {
		log_warn("cannot look for what an earlier run left");
		if (own != -1)
			(void)close(own);
		return;
	}
	while ((entry = readdir(dir)) != NULL) {
		if (is_left(s, entry->d_name))
			left_add(s, entry->d_name);
	}
	(void)closedir(dir);
}

static bool
session_is_left(const struct sessions *s, const char *name)
{
	(void)s;
	return session_is_name(name);
}

/* Of another boot: whoever used it is not there any more. */
static bool
temp_is_left(const struct sessions *s, const char *name)
{
	const char *boot = name + sizeof(SESSION_TEMP_PREFIX) - 1;
	struct stat st;

	if (strlen(name) != SESSION_TEMP_LEN ||
	    strncmp(name, SESSION_TEMP_PREFIX, (size_t)(boot - name)) != 0 ||
	    strspn(boot, HEX_DIGITS) != SESSION_BOOT_LEN ||
	    boot[SESSION_BOOT_LEN] != '-' ||
	    !session_is_name(boot + SESSION_BOOT_LEN + 1) ||
	    memcmp(boot, s->boot, SESSION_BOOT_LEN) == 0)
		return false;
	return fstatat(s->cache_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode) && st.st_uid == s->account->uid;
}

void
sessions_collect(struct sessions *s)
{
	left_collect(s, s->root_fd, session_is_left);
	left_collect(s, s->cache_fd, temp_is_left);
}

void
sessions_sweep(struct sessions *s)
{
	if (s->left_count == 0)
		return;
	log_info("removing %zu session directories of an earlier run",
	    s->left_count);
	clean_start(s, (const session_name *)s->left, s->left_count);
	s->left_count = 0;
}

void
sessions_hold(struct sessions *s, const char *attempt)
{
	session_name name;
	size_t i, kept = 0;

	name_of(name, attempt);
	for (i = 0; i < s->left_count; i++) {
		if (strcmp(s->left[i], name) != 0)
			memmove(s->left[kept++], s->left[i], sizeof(name));
	}
	s->left_count = kept;
}

static bool
is_there(int fd, const char *name)
{
	return faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void
sessions_release(struct sessions *s, const char *attempt)
{
	session_name names[1], temp;
	size_t i;

	name_of(names[0], attempt);
	for (i = 0; i < s->left_count; i++) {
		if (strcmp(s->left[i], names[0]) == 0)
			return;
	}
	/* The run-time directory may have vanished between the two runs. */
	session_temp_name(s, names[0], temp);
	if (is_there(s->root_fd, names[0]) || is_there(s->cache_fd, temp))
		clean_start(s, (const session_name *)names, 1);
}

/* ---- one session -------------------------------------------------------- */

/* To the worker's group, when there is a worker's account. */
static int
give_to_group(const struct sessions *s, int fd, const char *name, mode_t mode)
{
	if (s->is_root &&
	    fchownat(fd, name, (uid_t)-1, s->account->gid,
		AT_SYMLINK_NOFOLLOW) == -1)
		return -1;
	return fchmodat(fd, name, s->is_root ? mode : mode & 0700, 0);
}

/* In a root that was removed, nothing can be made any more. */
static int
dir_make(const struct session *s, struct sessions *home, struct error *e)
{
	int rc = mkdirat(home->root_fd, s->name, 0700);

	if (rc == -1 && errno == ENOENT) {
		if (root_open(home, e) == -1)
			return -1;
		log_warnx(
		    "%s had vanished; it is made again", log_safe(home->root));
		rc = mkdirat(home->root_fd, s->name, 0700);
	}
	if (rc == -1 || give_to_group(home, home->root_fd, s->name, 0710) == -1)
		return error_errno(e, "%s", log_safe(s->dir));
	return 0;
}

/* In a cache that was removed neither: somebody may have made another. */
static int
temp_mkdir(const struct session *s, struct sessions *home, const char *name,
    struct error *e)
{
	int rc = mkdirat(home->cache_fd, name, 0700);

	if (rc == -1 && errno == ENOENT) {
		if (cache_open(home, e) == -1)
			return -1;
		log_warnx(
		    "%s had vanished; there is another", log_safe(home->cache));
		rc = mkdirat(home->cache_fd, name, 0700);
	}
	return rc == -1 ? error_errno(e, "%s", log_safe(s->temp)) : 0;
}

/* Opened at once: in a sticky directory nobody can have put another there. */
static int
temp_give(const struct session *s, const struct sessions *home,
    const char *name, struct error *e)
{
	struct stat st;
	int result = 0;
	int fd = openat(home->cache_fd, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd == -1 || fstat(fd, &st) == -1)
		result = error_errno(e, "%s", log_safe(s->temp));
	else if (st.st_uid != geteuid())
		result =
		    error_set(e, "%s: not what was made", log_safe(s->temp));
	else if (home->is_root &&
	    fchown(fd, home->account->uid, home->account->gid) == -1)
		result = error_errno(e, "%s", log_safe(s->temp));
	if (fd != -1)
		(void)close(fd);
	return result;
}

/* One that stays without its session's is not found again. */
static int
temp_make(const struct session *s, struct sessions *home, struct error *e)
{
	const char *name = strrchr(s->temp, '/') + 1;

	if (temp_mkdir(s, home, name, e) == -1)
		return -1;
	if (temp_give(s, home, name, e) == 0)
		return 0;
	(void)unlinkat(home->cache_fd, name, AT_REMOVEDIR);
	return -1;
}

static void
session_free(struct session *s)
{
	free(s->dir);
	free(s->socket);
	free(s->declaration);
	free(s->temp);
	free(s);
}

struct session *
session_new(struct sessions *home, const char *attempt, struct error *e)
{
	struct session *s = xcalloc(1, sizeof(*s));
	session_name temp;

	s->home = home;
	name_of(s->name, attempt);
	(void)xasprintf(&s->dir, "%s/%s", home->root, s->name);
	(void)xasprintf(&s->socket, "%s/" SOCKET_NAME, s->dir);
	(void)xasprintf(&s->declaration, "%s/" DECLARATION_NAME, s->dir);
	session_temp_name(home, s->name, temp);
	(void)xasprintf(&s->temp, "%s%s%s", home->cache,
	    strcmp(home->cache, "/") == 0 ? "" : "/", temp);
	if (dir_make(s, home, e) == -1) {
		session_free(s); /* a stale one is not ours to remove */
		return NULL;
	}
	if (temp_make(s, home, e) == -1) {
		(void)unlinkat(home->root_fd, s->name, AT_REMOVEDIR);
		session_free(s);
		return NULL;
	}
	return s;
}

int
session_listen(const struct session *s, struct error *e)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(un.sun_path, s->socket, strlen(s->socket) + 1);
	if (fd != -1 && bind(fd, (struct sockaddr *)&un, sizeof(un)) == 0 &&
	    give_to_group(s->home, AT_FDCWD, s->socket, 0660) == 0 &&
	    listen(fd, BACKLOG) == 0)
		return fd;
	(void)error_errno(e, "%s", log_safe(s->socket));
	if (fd != -1)
		(void)close(fd);
	return -1;
}

static int
write_all(int fd, const char *text)
{
	size_t len = strlen(text);
	ssize_t n;

	for (; len > 0; len -= (size_t)n, text += n) {
		n = write(fd, text, len);
		if (n == -1 && errno == EINTR)
			n = 0;
		if (n == -1)
			return -1;
	}
	return 0;
}

int
session_declare(const struct session *s, const char *text, struct error *e)
{
	int fd = open(s->declaration,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int result = 0;

	if (fd == -1)
		return error_errno(e, "%s", log_safe(s->declaration));
	if (write_all(fd, text) == -1 ||
	    give_to_group(s->home, AT_FDCWD, s->declaration, 0640) == -1) {
		result = error_errno(e, "%s", log_safe(s->declaration));
		(void)unlink(s->declaration);
	}
	(void)close(fd);
	return result;
}

bool
session_drop_declaration(const struct session *s)
{
	if (unlink(s->declaration) == 0)
		return true;
	if (errno != ENOENT)
		log_warn("%s", log_safe(s->declaration));
	return false;
}

void
session_remove(struct session *s)
{
	session_name names[1];

	memcpy(names[0], s->name, sizeof(s->name));
	clean_start(s->home, (const session_name *)names, 1);
	session_free(s);
}
