/* Which directories and files are private enough, and the making of them. */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/paths.h"

#define STRANGER 65533

/* ---- a place to try things in ------------------------------------------- */

static char top[64];

static int
top_make(void **state)
{
	(void)state;
	(void)snprintf(top, sizeof(top), "/tmp/paths-XXXXXX");
	return mkdtemp(top) == NULL || chmod(top, 0755) == -1 ? -1 : 0;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int
top_remove(void **state)
{
	(void)state;
	return nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* A path below top; one of four buffers in turn. */
static const char *
at(const char *name)
{
	static char buffers[4][PATH_MAX];
	static unsigned int turn;
	char *out = buffers[turn++ % 4];

	(void)snprintf(out, PATH_MAX, "%s/%s", top, name);
	return out;
}

static const char *
make_dir(const char *name, mode_t mode)
{
	const char *path = at(name);

	assert_int_equal(0, mkdir(path, 0700));
	assert_int_equal(0, chmod(path, mode));
	return path;
}

static const char *
make_file(const char *name, mode_t mode, const char *text)
{
	const char *path = at(name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_int_not_equal(-1, fd);
	assert_int_equal(strlen(text), write(fd, text, strlen(text)));
	assert_int_equal(0, fchmod(fd, mode));
	assert_int_equal(0, close(fd));
	return path;
}

static void
assert_says(const struct error *e, const char *part)
{
	if (strstr(e->text, part) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e->text, part);
}

/* ---- ancestors ------------------------------------------------------------
 */

static void
assert_ancestors(const char *dir, uid_t owner, const char *part)
{
	struct error e = {0, ""};
	int rc = path_ancestors_check(dir, owner, &e);

	if (part == NULL && rc == -1)
		fail_msg("%s", e.text);
	if (part == NULL)
		return;
	assert_int_equal(-1, rc);
	assert_says(&e, part);
}

static void
test_ancestors(void **state)
{
	(void)state;
	(void)make_dir("good", 0755);
	(void)make_dir("open", 0775);
	(void)make_dir("open/in", 0755);
	(void)make_dir("sticky", 01777);
	(void)make_dir("sticky/in", 0755);
	(void)make_file("good/file", 0644, "");
	/* /tmp itself is a sticky one. */
	assert_ancestors(at("good/x"), geteuid(), NULL);
	assert_ancestors(at("good/x/"), geteuid(), NULL);
	assert_ancestors(at("sticky/in/x"), geteuid(), NULL);
	assert_ancestors("/x", geteuid(), NULL);
	assert_ancestors("/", geteuid(), NULL);
	/* The directory itself is not its ancestor. */
	assert_ancestors(at("open"), geteuid(), NULL);
	assert_ancestors(at("open/x"), geteuid(), "writable by others");
	assert_ancestors(at("open/in/x"), geteuid(), "writable by others");
	assert_ancestors(at("missing/x"), geteuid(), "No such file");
	assert_ancestors(at("good/file/x"), geteuid(), "not a directory");
	assert_ancestors("relative/x", geteuid(), "absolute");
}

/* As written, as resolved, and every link in between. */
static void
test_ancestors_links(void **state)
{
	(void)state;
	(void)make_dir("real", 0755);
	(void)make_dir("real/in", 0755);
	(void)make_dir("loose", 0777);
	(void)make_dir("loose/in", 0755);
	assert_int_equal(0, symlink("real/in", at("fine")));
	assert_int_equal(0, symlink("loose/in", at("astray")));
	assert_int_equal(0, symlink(at("real/in"), at("loose/hop")));
	assert_int_equal(0, symlink("loose/hop", at("through")));
	assert_int_equal(0, symlink("round", at("round")));
	assert_int_equal(0, symlink("../..", at("real/up")));
	assert_ancestors(at("fine/x"), geteuid(), NULL);
	assert_ancestors(at("astray/x"), geteuid(), "loose");
	/* Written and resolved chains are both good: the middle is not. */
	assert_ancestors(at("through/x"), geteuid(), "loose");
	assert_ancestors(at("round/x"), geteuid(), "symbolic links");
	assert_ancestors(at("real/up/x"), geteuid(), NULL);
}

static void
test_ancestors_owner(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	(void)make_dir("theirs", 0755);
	(void)make_dir("mine", 0755);
	assert_int_equal(0, chown(at("theirs"), STRANGER, STRANGER));
	assert_int_equal(0, symlink("mine", at("linked")));
	assert_int_equal(0, lchown(at("linked"), STRANGER, STRANGER));
	assert_ancestors(at("theirs/x"), 0, "uid 65533");
	assert_ancestors(at("theirs/x"), STRANGER, NULL);
	assert_ancestors(at("mine/x"), STRANGER, NULL); /* root's */
	assert_ancestors(at("linked/x"), 0, "uid 65533");
}

static void
test_traversable(void **state)
{
	struct error e = {0, ""};

	(void)state;
	(void)make_dir("shut", 0700);
	(void)make_dir("group", 0750);
	(void)make_dir("passage", 0711);
	assert_int_equal(
	    0, path_traversable_check(at("passage/x"), STRANGER, STRANGER, &e));
	assert_int_equal(
	    -1, path_traversable_check(at("shut/x"), STRANGER, STRANGER, &e));
	assert_says(&e, "shut");
	assert_int_equal(
	    -1, path_traversable_check(at("group/x"), STRANGER, STRANGER, &e));
	assert_int_equal(
	    0, path_traversable_check(at("group/x"), STRANGER, getegid(), &e));
	assert_int_equal(
	    0, path_traversable_check(at("shut/x"), geteuid(), getegid(), &e));
}

/* ---- private directories ---------------------------------------------------
 */

/* The mode of the directory that the descriptor is on, which is closed. */
static mode_t
mode_of(int fd)
{
	struct stat st;

	assert_int_not_equal(-1, fd);
	assert_int_equal(0, fstat(fd, &st));
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(O_PATH, fcntl(fd, F_GETFL) & O_PATH);
	assert_int_equal(FD_CLOEXEC, fcntl(fd, F_GETFD));
	assert_int_equal(0, close(fd));
	return st.st_mode & 07777;
}

static int
private_dir(const char *name, mode_t mode, mode_t forbidden, struct error *e)
{
	e->text[0] = '\0';
	return path_private_dir(
	    at(name), mode, forbidden, geteuid(), getegid(), e);
}

static void
test_private_dir(void **state)
{
	struct error e;
	mode_t mask = umask(077);

	(void)state;
	assert_int_equal(0710, mode_of(private_dir("new", 0710, 066, &e)));
	/* What is there is never changed. */
	assert_int_equal(0710, mode_of(private_dir("new", 0700, 022, &e)));
	(void)umask(mask);
	assert_int_equal(-1, private_dir("new", 0700, 077, &e));
	assert_says(&e, "0710");
	assert_int_equal(-1, private_dir("no/new", 0700, 077, &e));
	assert_int_equal(ENOENT, e.code);
	(void)make_dir("wide", 0770);
	assert_int_equal(-1, private_dir("wide", 0700, 022, &e));
	assert_int_equal(0, symlink("wide", at("link")));
	assert_int_equal(-1, private_dir("link", 0700, 0, &e));
	assert_says(&e, "real directory");
	(void)make_file("file", 0600, "");
	assert_int_equal(-1, private_dir("file", 0700, 0, &e));
	assert_says(&e, "real directory");
}

/* Made and not yet opened to others when the start was interrupted. */
static void
test_private_dir_interrupted(void **state)
{
	struct error e;

	(void)state;
	(void)make_dir("left", 0700);
	assert_int_equal(0711, mode_of(private_dir("left", 0711, 022, &e)));
	/* Not if anybody has changed it, or put something in it. */
	(void)make_dir("other", 0500);
	assert_int_equal(0500, mode_of(private_dir("other", 0711, 022, &e)));
	(void)make_dir("full", 0700);
	(void)make_file("full/file", 0600, "");
	assert_int_equal(0700, mode_of(private_dir("full", 0711, 022, &e)));
}

static void
test_private_dir_owner(void **state)
{
	struct error e = {0, ""};
	struct stat st;
	int fd;

	(void)state;
	if (geteuid() != 0) {
		assert_int_equal(-1,
		    path_private_dir(
			at("new"), 0700, 077, STRANGER, STRANGER, &e));
		return;
	}
	fd = path_private_dir(at("new"), 0700, 077, STRANGER, STRANGER, &e);
	assert_int_not_equal(-1, fd);
	assert_int_equal(0, fstat(fd, &st));
	assert_int_equal(STRANGER, st.st_uid);
	assert_int_equal(STRANGER, st.st_gid);
	assert_int_equal(0, close(fd));
	assert_int_equal(-1, path_private_dir(at("new"), 0700, 077, 0, 0, &e));
	assert_says(&e, "uid 65533");
	/* Made and not yet given away when the start was interrupted. */
	(void)make_dir("left", 0700);
	fd = path_private_dir(at("left"), 0700, 077, STRANGER, STRANGER, &e);
	assert_int_not_equal(-1, fd);
	assert_int_equal(0, close(fd));
	/* But with something in it, it is somebody's. */
	(void)make_dir("full", 0700);
	(void)make_file("full/file", 0600, "");
	assert_int_equal(-1,
	    path_private_dir(at("full"), 0700, 077, STRANGER, STRANGER, &e));
	assert_says(&e, "uid 0");
}

static void
test_private_dirs(void **state)
{
	struct error e = {0, ""};
	struct stat st;

	(void)state;
	(void)make_dir("root", 0755);
	assert_int_equal(0700,
	    mode_of(path_private_dirs(
		at("root"), at("root/a/b/c"), 0700, geteuid(), getegid(), &e)));
	assert_int_equal(0, stat(at("root/a"), &st));
	assert_int_equal(0700, st.st_mode & 07777);
	assert_int_equal(0700,
	    mode_of(path_private_dirs(
		at("root"), at("root/a/b"), 0700, geteuid(), getegid(), &e)));
	assert_int_equal(0755,
	    mode_of(path_private_dirs(
		at("root"), at("root"), 0700, geteuid(), getegid(), &e)));
	assert_int_equal(-1,
	    path_private_dirs(
		at("root"), at("rooted/x"), 0700, geteuid(), getegid(), &e));
	assert_says(&e, "below");
	assert_int_equal(-1,
	    path_private_dirs(
		at("none"), at("none/x"), 0700, geteuid(), getegid(), &e));
	assert_int_equal(ENOENT, e.code);
	assert_int_equal(0, chmod(at("root/a"), 0720));
	assert_int_equal(-1,
	    path_private_dirs(
		at("root"), at("root/a/b"), 0700, geteuid(), getegid(), &e));
	assert_says(&e, "root/a has mode");
}

/* ---- private files ----------------------------------------------------------
 */

static void
assert_unreadable(
    const char *name, mode_t forbidden, size_t most, const char *part)
{
	struct error e = {0, ""};
	char *text = NULL;
	size_t len;

	assert_int_equal(-1,
	    path_read_private(
		at(name), geteuid(), forbidden, most, &text, &len, &e));
	assert_null(text);
	assert_says(&e, part);
	assert_says(&e, name);
}

static void
test_read_private(void **state)
{
	struct error e;
	char *text;
	size_t len;

	(void)state;
	(void)make_file("six", 0644, "123456");
	assert_int_equal(0,
	    path_read_private(at("six"), geteuid(), 022, 6, &text, &len, &e));
	assert_int_equal(6, len);
	assert_string_equal("123456", text);
	free(text);
	assert_unreadable("six", 022, 5, "larger than 5");
	assert_unreadable("six", 077, 100, "0644");
	(void)make_file("writable", 0620, "");
	assert_unreadable("writable", 022, 100, "0620");
	assert_int_equal(0, symlink("six", at("link")));
	assert_unreadable("link", 022, 100, "not private");
	(void)make_dir("dir", 0700);
	assert_unreadable("dir", 022, 100, "regular");
	/* Without a writer a plain open would wait for ever. */
	assert_int_equal(0, mkfifo(at("fifo"), 0600));
	assert_unreadable("fifo", 022, 100, "regular");
	assert_int_equal(-1,
	    path_read_private(at("none"), geteuid(), 022, 6, &text, &len, &e));
	assert_int_equal(ENOENT, e.code);
	assert_int_equal(-1,
	    path_read_private(
		at("six"), geteuid() + 1, 022, 6, &text, &len, &e));
	assert_says(&e, "belongs to");
	(void)make_file("empty", 0600, "");
	assert_int_equal(0,
	    path_read_private(at("empty"), geteuid(), 077, 6, &text, &len, &e));
	assert_int_equal(0, len);
	assert_string_equal("", text);
	free(text);
}

#define IN_TOP(test) cmocka_unit_test_setup_teardown(test, top_make, top_remove)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    IN_TOP(test_ancestors),
	    IN_TOP(test_ancestors_links),
	    IN_TOP(test_ancestors_owner),
	    IN_TOP(test_traversable),
	    IN_TOP(test_private_dir),
	    IN_TOP(test_private_dir_interrupted),
	    IN_TOP(test_private_dir_owner),
	    IN_TOP(test_private_dirs),
	    IN_TOP(test_read_private),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
