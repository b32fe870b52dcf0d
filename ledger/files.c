#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/paths.h"
#include "common/xmalloc.h"
#include "ledger/files.h"

#ifdef __APPLE__
#define st_mtim st_mtimespec
#endif

enum open_result
database_refuse(struct error *e, const char *name, const char *why)
{
	(void)error_set(e, "%s: %s", name, why);
	return OPEN_REFUSED;
}

/*
 * The characters: kept, though the path is opened plainly, as one rule for
 * every reader of it. The chain above: looked at anew at every opening.
 */
static enum open_result
dir_check(const char *dir, struct error *e)
{
	struct stat st;

	if (*dir != '/' || strpbrk(dir, "?#%") != NULL)
		return database_refuse(
		    e, "state directory", "not an absolute path without ? # %");
	if (lstat(dir, &st) == -1) {
		(void)error_errno(e, "state directory %s", dir);
		return errno == ENOENT || errno == ENOTDIR ? OPEN_MISSING
							   : OPEN_FAILED;
	}
	if (!S_ISDIR(st.st_mode))
		return database_refuse(e, dir, "not a directory");
	if (st.st_uid != geteuid())
		return database_refuse(
		    e, dir, "not owned by the user that runs this");
	if ((st.st_mode & 077) != 0)
		return database_refuse(
		    e, dir, "others have access; chmod 700 it");
	return path_ancestors_check(dir, geteuid(), e) == -1 ? OPEN_REFUSED
							     : OPEN_OK;
}

/*
 * A second name would give the file a second WAL. One that is being removed
 * has none: a sidecar whose other user has just closed it.
 */
static enum open_result
file_check(int fd, const char *name, struct file_id *file, struct error *e)
{
	struct stat st;

	if (fstat(fd, &st) == -1) {
		(void)error_errno(e, "%s", name);
		return OPEN_FAILED;
	}
	if (!S_ISREG(st.st_mode))
		return database_refuse(e, name, "not a regular file");
	if (st.st_uid != geteuid())
		return database_refuse(
		    e, name, "not owned by the user that runs this");
	if ((st.st_mode & 077) != 0)
		return database_refuse(
		    e, name, "others have access; chmod 600 it");
	if (st.st_nlink > 1)
		return database_refuse(e, name, "it has a second name");
	*file = (struct file_id){st.st_dev, st.st_ino};
	return OPEN_OK;
}

/*
 * These descriptors are closed before SQLite opens the file, for closing one
 * later would drop SQLite's own locks.
 */
static enum open_result
file_check_at(int dir, const char *name, struct file_id *file, struct error *e)
{
	enum open_result result;
	int fd;

	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1) {
		if (errno == ENOENT)
			return OPEN_MISSING;
		if (errno == ELOOP)
			return database_refuse(e, name, "a symbolic link");
		(void)error_errno(e, "%s", name);
		return errno == EACCES ? OPEN_REFUSED : OPEN_FAILED;
	}
	result = file_check(fd, name, file, e);
	(void)close(fd);
	return result;
}

/*
 * The name is on the disk before anything is written behind it. Another
 * process that starts at the same moment may have made it.
 */
static enum open_result
file_create_at(int dir, const char *name, struct error *e)
{
	int fd = openat(dir, name,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if ((fd == -1 && errno != EEXIST) || fsync(dir) == -1) {
		(void)error_errno(e, "%s", name);
		if (fd != -1)
			(void)close(fd);
		return OPEN_FAILED;
	}
	if (fd != -1)
		(void)close(fd);
	return OPEN_OK;
}

/* Left by a crash with a looser umask: closed to others, as the file is. */
static enum open_result
sidecar_check_at(int dir, const char *name, struct error *e)
{
	enum open_result result = OPEN_FAILED;
	struct file_id file;
	struct stat st;
	int fd;

	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd == -1 && errno == ENOENT)
		return OPEN_OK;
	if (fd == -1 || fstat(fd, &st) == -1 ||
	    ((st.st_mode & 077) != 0 && fchmod(fd, 0600) == -1))
		(void)error_errno(e, "%s", name);
	else
		result = file_check(fd, name, &file, e);
	if (fd != -1)
		(void)close(fd);
	return result;
}

enum open_result
files_check(
    const char *path, bool create, struct file_id *file, struct error *e)
{
	enum open_result result = dir_check(path, e);
	int dir;

	if (result != OPEN_OK)
		return result;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir == -1) {
		(void)error_errno(e, "state directory %s", path);
		return OPEN_FAILED;
	}
	result = file_check_at(dir, DATABASE_NAME, file, e);
	if (result == OPEN_MISSING && create &&
	    (result = file_create_at(dir, DATABASE_NAME, e)) == OPEN_OK)
		result = file_check_at(dir, DATABASE_NAME, file, e);
	if (result == OPEN_OK && create)
		result = sidecar_check_at(dir, DATABASE_NAME "-wal", e);
	if (result == OPEN_OK && create)
		result = sidecar_check_at(dir, DATABASE_NAME "-shm", e);
	(void)close(dir);
	return result;
}

static void
file_look(const char *dir, const char *name, struct file_state *state)
{
	struct stat st;
	char *path;

	memset(state, 0, sizeof(*state));
	(void)xasprintf(&path, "%s/%s", dir, name);
	if (stat(path, &st) == 0)
		*state = (struct file_state){
		    {st.st_dev, st.st_ino}, st.st_size, st.st_mtim};
	free(path);
}

void
files_look(const char *dir, struct files_state *state)
{
	file_look(dir, DATABASE_NAME, &state->file);
	file_look(dir, DATABASE_NAME "-wal", &state->wal);
	file_look(dir, DATABASE_NAME "-shm", &state->shm);
}

static bool
file_equal(const struct file_state *a, const struct file_state *b)
{
	return a->id.dev == b->id.dev && a->id.ino == b->id.ino &&
	    a->bytes == b->bytes && a->written.tv_sec == b->written.tv_sec &&
	    a->written.tv_nsec == b->written.tv_nsec;
}

bool
files_equal(const struct files_state *a, const struct files_state *b)
{
	return file_equal(&a->file, &b->file) && file_equal(&a->wal, &b->wal) &&
	    file_equal(&a->shm, &b->shm);
}

enum open_result
files_same(const char *path, const struct file_id *file, struct error *e)
{
	struct stat st;

	if (lstat(path, &st) == 0 && st.st_dev == file->dev &&
	    st.st_ino == file->ino)
		return OPEN_OK;
	return database_refuse(
	    e, DATABASE_NAME, "another file has taken its place");
}
