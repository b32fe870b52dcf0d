#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/sandbox/acts.h"
#include "tests/sandbox/scene.h"

/* A failed call as the errno it left. */
#define TRY(call) ((call) == -1 ? errno : 0)

static int
open_and_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char byte;

	if (fd == -1)
		return errno;
	return TRY(read(fd, &byte, 1));
}

static int
open_and_write(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd == -1)
		return errno;
	return TRY(write(fd, "x", 1));
}

static int
create_in(const char *dir)
{
	char path[PATH_MAX + 16];

	(void)snprintf(path, sizeof(path), "%s/new-%d", dir, (int)getpid());
	return TRY(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
}

/* Through the call itself: opendir(3) would allocate before it opens. */
static int
list(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char buffer[1024];

	if (fd == -1)
		return errno;
	return TRY(syscall(SYS_getdents64, fd, buffer, sizeof(buffer)));
}

static int
rename_between(const char *from, const char *to_dir)
{
	char to[PATH_MAX + 16];

	(void)snprintf(to, sizeof(to), "%s/moved", to_dir);
	return TRY(rename(from, to));
}

int
act_read_inside(void)
{
	return open_and_read(scene.inside_file);
}

int
act_write_inside(void)
{
	return open_and_write(scene.inside_file);
}

int
act_create_inside(void)
{
	return create_in(scene.inside);
}

/* A file of its own, so that the scene's stays. */
int
act_rename_inside(void)
{
	char from[PATH_MAX + 16], to[PATH_MAX + 16];

	(void)snprintf(from, sizeof(from), "%s/from", scene.inside);
	(void)snprintf(to, sizeof(to), "%s/to", scene.inside);
	if (open(from, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) == -1)
		return errno;
	return TRY(rename(from, to));
}

int
act_unlink_inside(void)
{
	char path[PATH_MAX + 16];

	(void)snprintf(path, sizeof(path), "%s/gone", scene.inside);
	if (open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) == -1)
		return errno;
	return TRY(unlink(path));
}

int
act_list_inside(void)
{
	return list(scene.inside);
}

int
act_read_outside(void)
{
	return open_and_read(scene.outside_file);
}

int
act_write_outside(void)
{
	return open_and_write(scene.outside_file);
}

int
act_create_outside(void)
{
	return create_in(scene.outside);
}

int
act_unlink_outside(void)
{
	return TRY(unlink(scene.outside_file));
}

int
act_rename_out(void)
{
	return rename_between(scene.inside_file, scene.outside);
}

int
act_rename_in(void)
{
	return rename_between(scene.outside_file, scene.inside);
}

int
act_link_out(void)
{
	char to[PATH_MAX + 16];

	(void)snprintf(to, sizeof(to), "%s/linked", scene.inside);
	return TRY(link(scene.outside_file, to));
}

int
act_list_outside(void)
{
	return list(scene.outside);
}

int
act_stat_outside(void)
{
	struct stat st;

	return TRY(stat(scene.outside_file, &st));
}

int
act_truncate_outside(void)
{
	return TRY(truncate(scene.outside_file, 0));
}

int
act_read_etc(void)
{
	return open_and_read("/etc/passwd");
}

int
act_read_proc(void)
{
	return open_and_read("/proc/self/status");
}

int
act_read_tmp(void)
{
	return list("/tmp");
}

int
act_mkdir_inside(void)
{
	char path[PATH_MAX + 16];

	(void)snprintf(
	    path, sizeof(path), "%s/dir-%d", scene.inside, (int)getpid());
	return TRY(mkdir(path, 0700));
}

int
act_symlink_inside(void)
{
	char path[PATH_MAX + 16];

	(void)snprintf(
	    path, sizeof(path), "%s/link-%d", scene.inside, (int)getpid());
	return TRY(symlink("/etc", path));
}

int
act_fifo_inside(void)
{
	char path[PATH_MAX + 16];

	(void)snprintf(
	    path, sizeof(path), "%s/fifo-%d", scene.inside, (int)getpid());
	return TRY(mkfifo(path, 0600));
}

int
act_chmod_inside(void)
{
	return TRY(chmod(scene.inside_file, 0600));
}

int
act_chmod_outside(void)
{
	return TRY(chmod(scene.outside_file, 0666));
}

int
act_fchmod_open(void)
{
	return TRY(fchmod(scene.file, 0600));
}

int
act_chown_outside(void)
{
	return TRY(chown(scene.outside_file, scene.uid, scene.gid));
}

int
act_utimes_outside(void)
{
	return TRY(utimes(scene.outside_file, NULL));
}

int
act_setxattr_outside(void)
{
	return TRY(setxattr(scene.outside_file, "user.walls", "x", 1, 0));
}

int
act_chdir_outside(void)
{
	return TRY(chdir(scene.outside));
}

int
act_chroot_inside(void)
{
	return TRY(chroot(scene.inside));
}

int
act_map_file(void)
{
	void *at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, scene.file, 0);

	return at == MAP_FAILED ? errno : 0;
}

int
act_lock_open(void)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	return TRY(fcntl(scene.file, F_SETLK, &lock));
}

int
act_lease_open(void)
{
	return TRY(fcntl(scene.file, F_SETLEASE, F_RDLCK));
}

int
act_sync_open(void)
{
	return TRY(fdatasync(scene.file));
}

int
act_openat2_inside(void)
{
	struct open_how how = {.flags = O_RDONLY};

	return TRY(syscall(
	    SYS_openat2, AT_FDCWD, scene.inside_file, &how, sizeof(how)));
}

int
act_name_to_handle(void)
{
	struct {
		struct file_handle handle;
		unsigned char room[128];
	} out = {.handle = {.handle_bytes = 128}};
	int mount;

	return TRY(name_to_handle_at(
	    AT_FDCWD, scene.outside_file, &out.handle, &mount, 0));
}

int
act_inotify(void)
{
	return TRY(inotify_init1(IN_CLOEXEC));
}

/* What fstat(3) is in some libcs must work, and say nothing of names. */
int
act_fstat_empty_name(void)
{
	struct stat st;

	return TRY(fstatat(scene.file, "", &st, AT_EMPTY_PATH));
}

int
act_read_readable(void)
{
	return open_and_read(scene.readable_file);
}

int
act_write_readable(void)
{
	return open_and_write(scene.readable_file);
}

int
act_create_readable(void)
{
	return create_in(scene.readable);
}

int
act_read_hostname(void)
{
	return open_and_read("/etc/hostname");
}

int
act_write_null(void)
{
	return open_and_write("/dev/null");
}

int
act_open_terminal(void)
{
	return TRY(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
}

/* Everybody may by its mode. */
int
act_write_other_device(void)
{
	return open_and_write("/dev/random");
}

int
act_write_proc(void)
{
	return open_and_write("/proc/self/comm");
}

int
act_socket_inside(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(
	    at.sun_path, sizeof(at.sun_path), "%.80s/socket", scene.inside);
	return TRY(bind(fd, (struct sockaddr *)&at, sizeof(at)));
}
