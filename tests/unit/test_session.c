/*
 * Session and temp directories: who owns what, what a worker left is removed
 * without harm to anything else, and the sweep takes only what is left
 * (design 5; dispatch.md traps 16-18).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/xmalloc.h"
#include "supervisor/become.h"
#include "supervisor/session.h"

#define ATTEMPT "att_0123456789abcdef01234567"
#define STATE "/state/1-2"
/* printf '%s' /state/1-2 | sha256sum */
#define ROOT "s-4b3ed7f6"
#define BOOT "0A1b2c3d-0123-4567-89ab-0123456789ab"

struct place {
	char top[64];
	struct paths paths;
	struct account account;
	struct sessions *sessions;
};

static void
account_find(struct account *a)
{
	const struct passwd *pw =
	    geteuid() == 0 ? getpwnam("nobody") : getpwuid(geteuid());
	static gid_t group;

	assert_non_null(pw);
	group = pw->pw_gid;
	*a = (struct account){.uid = pw->pw_uid,
	    .gid = pw->pw_gid,
	    .name = xstrdup(pw->pw_name),
	    .groups = &group,
	    .group_count = 1};
}

static int
place_make(void **state)
{
	static struct place p;
	char *runs;
	struct error e;

	(void)umask(022);
	(void)snprintf(p.top, sizeof(p.top), "/tmp/test_session.XXXXXX");
	if (mkdtemp(p.top) == NULL || chmod(p.top, 0755) == -1)
		return -1;
	(void)xasprintf(&runs, "%s/run", p.top);
	(void)xasprintf(&p.paths.runtime_dir, "%s/run/demo", p.top);
	(void)xasprintf(&p.paths.cache_dir, "%s/cache", p.top);
	if (mkdir(runs, 0755) == -1 || mkdir(p.paths.runtime_dir, 0755) == -1 ||
	    mkdir(p.paths.cache_dir, 0755) == -1 ||
	    chmod(p.paths.cache_dir, 01777) == -1)
		return -1;
	free(runs);
	(void)umask(077); /* as the supervisor has it */
	account_find(&p.account);
	p.sessions = sessions_open(
	    &p.paths, STATE, &p.account, geteuid() == 0, BOOT, &e);
	if (p.sessions == NULL)
		fail_msg("%s", e.text);
	*state = &p;
	return 0;
}

static int
place_remove(void **state)
{
	struct place *p = *state;
	char *command;
	pid_t pid;

	sessions_close(p->sessions);
	command = xstrdup(p->top);
	pid = fork();
	if (pid == 0) {
		(void)execl("/bin/rm", "rm", "-rf", command, (char *)NULL);
		_exit(127);
	}
	(void)waitpid(pid, NULL, 0);
	free(command);
	free(p->paths.runtime_dir);
	free(p->paths.cache_dir);
	free(p->account.name);
	return 0;
}

static bool
exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* Until whoever cleans has ended; then PATH must be gone. */
static void
await_gone(const char *path)
{
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		continue;
	if (exists(path))
		fail_msg("%s is still there", path);
}

/* Do it as the worker would; the exit code of DEED. */
static int
as_worker(const struct place *p, int (*deed)(const void *arg), const void *arg)
{
	int status;
	pid_t pid = fork();

	assert_true(pid != -1);
	if (pid == 0)
		_exit(become_account(&p->account) == -1 ? 99 : deed(arg));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static struct session *
make(const struct place *p, const char *attempt)
{
	struct error e;
	struct session *s = session_new(p->sessions, attempt, &e);

	if (s == NULL)
		fail_msg("%s", e.text);
	return s;
}

/* As a run that dies does. */
static void
session_forget(struct session *s)
{
	free(s->dir);
	free(s->temp);
	free(s->socket);
	free(s->declaration);
	free(s);
}

static void
assert_mode(const char *path, mode_t as_root, mode_t as_person)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(
	    st.st_mode & 07777, geteuid() == 0 ? as_root : as_person);
}

static int
connect_to(const void *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(
	    un.sun_path, sizeof(un.sun_path), "%s", (const char *)path);
	return connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0 ? 0 : 1;
}

static int
read_it(const void *path)
{
	return open(path, O_RDONLY) == -1 ? 1 : 0;
}

static int
write_it(const void *path)
{
	return open(path, O_WRONLY) == -1 ? 1 : 0;
}

static int
write_beside(const void *dir)
{
	int fd = open(dir, O_PATH | O_DIRECTORY);

	return openat(fd, "x", O_WRONLY | O_CREAT, 0600) == -1 ? 1 : 0;
}

static void
test_rights(void **state)
{
	struct place *p = *state;
	struct session *s = make(p, ATTEMPT);
	struct error e;
	struct stat st;
	int fd = session_listen(s, &e);

	assert_true(fd != -1);
	assert_int_equal(session_declare(s, "{}\n", &e), 0);
	assert_mode(s->dir, 0710, 0700);
	assert_mode(s->socket, 0660, 0600);
	assert_mode(s->declaration, 0640, 0600);
	assert_string_equal(
	    strrchr(s->temp, '/'), "/connectd-0a1b2c3d-0123456789ab");
	assert_int_equal(lstat(s->temp, &st), 0);
	assert_int_equal(st.st_uid, p->account.uid);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(as_worker(p, connect_to, s->socket), 0);
	assert_int_equal(as_worker(p, read_it, s->declaration), 0);
	assert_int_equal(as_worker(p, write_beside, s->temp), 0);
	if (geteuid() == 0) {
		assert_int_equal(as_worker(p, write_it, s->declaration), 1);
		assert_int_equal(as_worker(p, write_beside, s->dir), 1);
	}
	/* Made exclusively, and gone once it was read. */
	assert_int_equal(session_declare(s, "{}\n", &e), -1);
	assert_true(session_drop_declaration(s));
	assert_false(session_drop_declaration(s));
	(void)close(fd);
	session_remove(s);
}

static void
test_stale_name(void **state)
{
	struct place *p = *state;
	struct session *s = make(p, ATTEMPT);
	struct error e;
	char *dir = xstrdup(s->dir), *temp = xstrdup(s->temp);

	assert_null(session_new(p->sessions, ATTEMPT, &e));
	assert_int_equal(e.code, EEXIST);
	assert_true(exists(dir) && exists(temp));
	session_remove(s);
	await_gone(dir);
	/* A temp directory that somebody put there is not used either. */
	assert_int_equal(mkdir(temp, 0777), 0);
	assert_null(session_new(p->sessions, ATTEMPT, &e));
	assert_false(exists(dir));
	assert_int_equal(rmdir(temp), 0);
	free(dir);
	free(temp);
}

/* What tidies /tmp up may take the empty directory of an idle connector. */
static void
test_vanished_root(void **state)
{
	struct place *p = *state;
	struct session *s;
	char *dir, *temp;

	assert_int_equal(rmdir(p->sessions->root), 0);
	s = make(p, ATTEMPT);
	dir = xstrdup(s->dir);
	temp = xstrdup(s->temp);
	assert_mode(p->sessions->root, 0711, 0700);
	assert_mode(s->dir, 0710, 0700);
	session_remove(s);
	await_gone(temp);
	await_gone(dir);
	free(dir);
	free(temp);
}

/* Whose it is to make it again is somebody else; it must do as the first did.
 */
static void
test_vanished_cache(void **state)
{
	struct place *p = *state;
	const char *cache = p->paths.cache_dir;
	struct session *s;
	struct error e;
	char *temp;
	int i;

	assert_int_equal(rmdir(cache), 0);
	assert_null(session_new(p->sessions, ATTEMPT, &e));
	assert_int_equal(e.code, ENOENT);
	assert_int_equal(mkdir(cache, 0700), 0);
	for (i = 0; i < 2 && geteuid() == 0; i++) {
		assert_null(session_new(p->sessions, ATTEMPT, &e));
		assert_non_null(strstr(e.text, "cannot enter"));
	}
	assert_int_equal(chmod(cache, 0777), 0);
	assert_null(session_new(p->sessions, ATTEMPT, &e));
	assert_non_null(strstr(e.text, "others may remove"));
	assert_int_equal(chmod(cache, 01777), 0);
	s = make(p, ATTEMPT);
	temp = xstrdup(s->temp);
	assert_true(exists(temp));
	session_remove(s);
	await_gone(temp);
	free(temp);
}

/* As one who is not root, and yet is to give the temp directory to root. */
static int
give_in_vain(const void *arg)
{
	const struct place *p = arg;
	struct account receiver = p->account;
	struct sessions home = *p->sessions;
	struct error e = {0};

	receiver.uid = 0;
	home.account = &receiver;
	home.is_root = true;
	return session_new(&home, ATTEMPT, &e) == NULL && e.code == EPERM &&
		strstr(e.text, p->paths.cache_dir) != NULL
	    ? 0
	    : 1;
}

/* Then neither stays: without its session's a temp one is found by nobody. */
static void
test_temp_that_cannot_be_given(void **state)
{
	struct place *p = *state;
	const char *root = p->sessions->root;

	assert_int_equal(chown(root, p->account.uid, p->account.gid), 0);
	assert_int_equal(as_worker(p, give_in_vain, p), 0);
	assert_int_equal(rmdir(root), 0);
	assert_int_equal(rmdir(p->paths.cache_dir), 0);
}

/* A worker's worst: shut directories, links to elsewhere, many files. */
static int
make_mess(const void *temp)
{
	char name[64];
	int i, fd;

	if (chdir(temp) == -1 || mkdir("shut", 0700) == -1 ||
	    mkdir("shut/deep", 0700) == -1 ||
	    symlink("../../keep", "out") == -1 ||
	    symlink("../../keep", "shut/deep/out") == -1 ||
	    mkfifo("shut/fifo", 0600) == -1)
		return 1;
	for (i = 0; i < 600; i++) {
		(void)snprintf(name, sizeof(name), "shut/deep/%d", i);
		fd = open(name, O_WRONLY | O_CREAT, 0400);
		if (fd == -1)
			return 1;
		(void)close(fd);
	}
	return chmod("shut/deep", 0) == -1 || chmod("shut", 0) == -1;
}

static void
test_removal(void **state)
{
	struct place *p = *state;
	struct session *s = make(p, ATTEMPT);
	char *dir = xstrdup(s->dir), *temp = xstrdup(s->temp), *kept, *file;
	struct error e;
	int fd;

	(void)xasprintf(&kept, "%s/keep", p->top);
	(void)xasprintf(&file, "%s/file", kept);
	assert_int_equal(mkdir(kept, 0777), 0);
	assert_int_equal(chown(kept, p->account.uid, p->account.gid), 0);
	assert_true((fd = open(file, O_WRONLY | O_CREAT, 0666)) != -1);
	(void)close(fd);
	assert_int_equal(as_worker(p, make_mess, temp), 0);
	(void)close(session_listen(s, &e));
	assert_int_equal(session_declare(s, "{}\n", &e), 0);
	session_remove(s);
	await_gone(temp);
	await_gone(dir);
	assert_true(exists(file));
	free(dir);
	free(temp);
	free(kept);
	free(file);
}

/* Deeper than descriptors or paths go, some of it shut. */
static int
make_depth(const void *temp)
{
	int i;

	if (chdir(temp) == -1 || mkdir("lifted-1", 0700) == -1 ||
	    mkdir("lifted-1/full", 0700) == -1)
		return 1;
	for (i = 0; i < 700; i++) {
		if (mkdir("down", 0700) == -1 || chdir("down") == -1 ||
		    close(open("file", O_WRONLY | O_CREAT, 0400)) == -1 ||
		    chmod("..", 0500) == -1)
			return 1;
	}
	return 0;
}

static void
test_removal_of_depth(void **state)
{
	struct place *p = *state;
	struct session *s = make(p, ATTEMPT);
	char *dir = xstrdup(s->dir), *temp = xstrdup(s->temp);

	assert_int_equal(as_worker(p, make_depth, temp), 0);
	session_remove(s);
	await_gone(temp);
	await_gone(dir);
	free(dir);
	free(temp);
}

/*
 * It is the worker's rights by which a worker's files are removed. What cannot
 * be removed is not forgotten: a later run tries again.
 */
static void
test_removal_by_worker(void **state)
{
	struct place *p = *state;
	struct session *s = make(p, ATTEMPT);
	char *dir = xstrdup(s->dir), *temp = xstrdup(s->temp), *shut, *file;
	char *declaration = xstrdup(s->declaration);
	struct error e;

	if (geteuid() != 0)
		skip();
	(void)xasprintf(&shut, "%s/of-root", temp);
	(void)xasprintf(&file, "%s/file", shut);
	assert_int_equal(mkdir(shut, 0700), 0);
	assert_int_equal(close(open(file, O_WRONLY | O_CREAT, 0600)), 0);
	assert_int_equal(session_declare(s, "{}\n", &e), 0);
	session_remove(s);
	await_gone(declaration);
	assert_true(exists(file));
	assert_true(exists(dir));
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(shut), 0);
	sessions_collect(p->sessions);
	sessions_sweep(p->sessions);
	await_gone(temp);
	await_gone(dir);
	free(declaration);
	free(dir);
	free(temp);
	free(shut);
	free(file);
}

/* What cleans must hold nothing of ours open: no lock, no link. */
static void
test_alone(void **state)
{
	int status, pair[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(pair), 0);
	pid = fork();
	if (pid == 0) {
		become_alone(&pair[0], 1);
		_exit(fcntl(pair[0], F_GETFD) != -1 &&
		    fcntl(pair[1], F_GETFD) == -1 && fcntl(2, F_GETFD) != -1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 1);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

/* In the place of temp directories, the worker's, NAME. */
static char *
leave(const struct place *p, const char *name)
{
	char *dir;

	(void)xasprintf(&dir, "%s/%s", p->paths.cache_dir, name);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(chown(dir, p->account.uid, p->account.gid), 0);
	return dir;
}

/* As a service manager's directory does, with every stop. */
static void
test_release_without_runtime_directory(void **state)
{
	struct place *p = *state;
	struct session *s = make(p, ATTEMPT);

	assert_int_equal(rmdir(s->dir), 0);
	sessions_collect(p->sessions);
	sessions_sweep(p->sessions);
	assert_true(exists(s->temp)); /* may be another instance's */
	sessions_release(p->sessions, ATTEMPT);
	await_gone(s->temp);
	session_forget(s);
}

/* A later run: what has a session directory is left over. */
static void
test_sweep(void **state)
{
	struct place *p = *state;
	struct session *s = make(p, ATTEMPT);
	struct error e;

	(void)close(session_listen(s, &e));
	assert_int_equal(as_worker(p, make_mess, s->temp), 0);
	sessions_collect(p->sessions);
	assert_true(exists(s->temp)); /* whose, is not known yet */
	sessions_sweep(p->sessions);
	await_gone(s->temp);
	await_gone(s->dir);
	session_forget(s);
}

/* Of the same profile, with another state directory: it has another ledger. */
static void
test_sweep_of_another_instance(void **state)
{
	struct place *p = *state;
	struct session *s = make(p, ATTEMPT);
	struct sessions *other;
	struct error e;

	assert_string_equal(strrchr(p->sessions->root, '/') + 1, ROOT);
	other = sessions_open(
	    &p->paths, "/state/1-3", &p->account, geteuid() == 0, BOOT, &e);
	assert_non_null(other);
	sessions_collect(other);
	assert_int_equal(other->left_count, 0);
	sessions_close(other);
	session_remove(s);
}

/* What is of another boot is nobody's; of this one, maybe of another run. */
static void
test_sweep_of_another_boot(void **state)
{
	static const char *const stay[] = {"connectd-0a1b2c3d-00000000aaaa",
	    "connectd-00000000aaaa", "connectd-private",
	    "connectd-0a1b2c3e-00000000aaa", "connectd-0a1b2c3e-00000000aaaag",
	    "connectd-0A1b2c3e-00000000aaaa", "connectd-0a1b2c3e_00000000aaaa",
	    "connective0a1b2c3e-00000000aaaa"};
	enum { STAY = sizeof(stay) / sizeof(stay[0]) };
	struct place *p = *state;
	char *left = leave(p, "connectd-0a1b2c3e-00000000aaaa"), *kept[STAY];
	char *of_root = leave(p, "connectd-0a1b2c3e-00000000bbbb");
	bool is_root = geteuid() == 0;
	size_t i;

	for (i = 0; i < STAY; i++)
		kept[i] = leave(p, stay[i]);
	assert_int_equal(chown(of_root, geteuid(), getegid()), 0);
	assert_int_equal(as_worker(p, make_mess, left), 0);
	sessions_collect(p->sessions);
	assert_true(exists(left));
	sessions_sweep(p->sessions);
	await_gone(left);
	assert_int_equal(exists(of_root), is_root);
	for (i = 0; i < STAY; i++) {
		assert_true(exists(kept[i]));
		free(kept[i]);
	}
	free(left);
	free(of_root);
}

/* What above the sessions would let others in, or keep the worker out. */
static void
test_above(void **state)
{
	struct place *p = *state;
	struct sessions *s;
	struct error e;
	bool is_root = geteuid() == 0;

	assert_int_equal(chmod(p->paths.cache_dir, 0777), 0);
	assert_null(
	    sessions_open(&p->paths, STATE, &p->account, is_root, BOOT, &e));
	assert_non_null(strstr(e.text, "others may remove"));
	assert_int_equal(chmod(p->paths.cache_dir, 01777), 0);
	assert_int_equal(chmod(p->sessions->root, 0777), 0);
	assert_null(
	    sessions_open(&p->paths, STATE, &p->account, is_root, BOOT, &e));
	assert_int_equal(chmod(p->sessions->root, 0711), 0);
	if (is_root) {
		assert_int_equal(chmod(p->top, 0700), 0);
		assert_null(sessions_open(
		    &p->paths, STATE, &p->account, true, BOOT, &e));
		assert_non_null(strstr(e.text, "cannot enter"));
		assert_int_equal(chmod(p->top, 0755), 0);
	}
	s = sessions_open(&p->paths, STATE, &p->account, is_root, BOOT, &e);
	assert_non_null(s);
	sessions_close(s);
}

static void
test_long_path(void **state)
{
	struct place *p = *state;
	struct paths paths = p->paths;
	char name[120];
	struct error e;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	name[0] = '/';
	paths.runtime_dir = name;
	assert_null(sessions_open(&paths, STATE, &p->account, false, BOOT, &e));
	assert_non_null(strstr(e.text, "too long for sockets"));
}

int
main(void)
{
#define IN_PLACE(test) \
	cmocka_unit_test_setup_teardown(test, place_make, place_remove)
	const struct CMUnitTest tests[] = {
	    IN_PLACE(test_rights),
	    IN_PLACE(test_stale_name),
	    IN_PLACE(test_vanished_root),
	    IN_PLACE(test_vanished_cache),
	    IN_PLACE(test_temp_that_cannot_be_given),
	    IN_PLACE(test_removal),
	    IN_PLACE(test_removal_of_depth),
	    IN_PLACE(test_removal_by_worker),
	    cmocka_unit_test(test_alone),
	    IN_PLACE(test_release_without_runtime_directory),
	    IN_PLACE(test_sweep),
	    IN_PLACE(test_sweep_of_another_instance),
	    IN_PLACE(test_sweep_of_another_boot),
	    IN_PLACE(test_above),
	    IN_PLACE(test_long_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
