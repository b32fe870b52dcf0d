#include <sys/stat.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/identity.h"
#include "common/paths.h"

#define OPEN_DIRS_MAX 16

/* The leaf that the supervisor is in. */
#define LEAF_NAME "supervisor"

/* Those that limits.worker may speak of. */
static const char *const controllers[] = {"memory", "pids", "cpu", "io"};

/* Where cgroup2 is mounted, and which cgroup is the root of what we see. */
struct mount {
	char point[PATH_MAX];
	char root[PATH_MAX];
};

/* "id parent dev root point options... - type source options" */
static bool
mount_parse(const char *line, struct mount *out)
{
	char root[PATH_MAX], point[PATH_MAX];
	const char *type = strstr(line, " - ");

	static_assert(PATH_MAX == 4096, "the widths below");
	if (type == NULL || strncmp(type, " - cgroup2 ", 11) != 0 ||
	    sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) != 2)
		return false;
	/* A name with a blank in it is written with an escape: not ours. */
	if (strchr(root, '\\') != NULL || strchr(point, '\\') != NULL)
		return false;
	memcpy(out->root, root, sizeof(root));
	memcpy(out->point, point, sizeof(point));
	return true;
}

static int
mount_find(struct mount *out)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	if (file == NULL)
		return -1;
	while (!found && getline(&line, &size, file) != -1)
		found = mount_parse(line, out);
	free(line);
	(void)fclose(file);
	return found ? 0 : -1;
}

/* The line of the v2 hierarchy is "0::/path". */
static int
cgroup_line(pid_t pid, char *out, size_t size)
{
	char name[64];
	FILE *file;
	char *line = NULL;
	size_t room = 0;
	int rc = -1;

	(void)snprintf(name, sizeof(name), "/proc/%d/cgroup", (int)pid);
	if ((file = fopen(name, "re")) == NULL)
		return -1;
	while (rc == -1 && getline(&line, &room, file) != -1) {
		if (strncmp(line, "0::/", 4) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		if ((size_t)snprintf(out, size, "%s", line + 3) < size)
			rc = 0;
	}
	free(line);
	(void)fclose(file);
	return rc;
}

/* The directory of a process's cgroup; -1 when it is outside what we see. */
static int
cgroup_dir(pid_t pid, char *out, size_t size)
{
	char line[PATH_MAX];
	const char *below = line;
	struct mount m;

	if (cgroup_line(pid, line, sizeof(line)) == -1 || mount_find(&m) == -1)
		return -1;
	if (strcmp(m.root, "/") != 0) {
		if (!path_contains(m.root, line))
			return -1;
		below += strlen(m.root);
	}
	/* "/..": below another root than that of our namespace. */
	if (strncmp(below, "/..", 3) == 0)
		return -1;
	if (strcmp(below, "/") == 0)
		below = "";
	return (size_t)snprintf(out, size, "%s%s", m.point, below) < size ? 0
									  : -1;
}

/* One of a cgroup's files. 0 or -1 with errno. */
static int
control_read(const char *path, const char *name, char *out, size_t size)
{
	char file[PATH_MAX];
	ssize_t n;
	int fd, saved;

	(void)snprintf(file, sizeof(file), "%s/%s", path, name);
	if ((fd = open(file, O_RDONLY | O_CLOEXEC)) == -1)
		return -1;
	n = read(fd, out, size - 1);
	saved = errno;
	(void)close(fd);
	errno = saved;
	if (n == -1)
		return -1;
	out[n] = '\0';
	return 0;
}

static int
control_write(const char *path, const char *name, const char *value)
{
	char file[PATH_MAX];
	ssize_t n;
	int fd, saved;

	(void)snprintf(file, sizeof(file), "%s/%s", path, name);
	if ((fd = open(file, O_WRONLY | O_CLOEXEC)) == -1)
		return -1;
	n = write(fd, value, strlen(value));
	saved = errno;
	(void)close(fd);
	errno = saved;
	return n == -1 ? -1 : 0;
}

/* True when this process is the only one directly in the cgroup. */
static bool
is_alone(const char *path)
{
	char procs[64], own[16];

	(void)snprintf(own, sizeof(own), "%d\n", (int)getpid());
	return control_read(path, "cgroup.procs", procs, sizeof(procs)) == 0 &&
	    strcmp(procs, own) == 0;
}

static void
move_to_leaf(const char *path)
{
	char leaf[PATH_MAX], own[16];

	(void)snprintf(own, sizeof(own), "%d", (int)getpid());
	if ((size_t)snprintf(leaf, sizeof(leaf), "%s/" LEAF_NAME, path) <
		sizeof(leaf) &&
	    (mkdir(leaf, 0755) == 0 || errno == EEXIST))
		(void)control_write(leaf, "cgroup.procs", own);
}

/*
 * Let what is below have limits. A controller that cannot be had is missed
 * when a limit of it is set, by cgroup_limit(). A cgroup that gives them away
 * may hold no process itself, except the root.
 */
static void
controllers_enable(const char *path)
{
	char word[16];
	size_t i;
	int tries;

	for (i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++) {
		(void)snprintf(word, sizeof(word), "+%s", controllers[i]);
		for (tries = 0; tries < 2; tries++) {
			if (control_write(
				path, "cgroup.subtree_control", word) == 0 ||
			    errno != EBUSY || !is_alone(path))
				break;
			move_to_leaf(path);
		}
	}
}

/*
 * The name of our base says whose view a path in it is of: to another cgroup
 * namespace, or of another hierarchy, the same path is another place, and what
 * is missing there may be here.
 */
static int
base_name(char *out, size_t size)
{
	struct mount m;
	struct stat ns, root;

	if (mount_find(&m) == -1 || stat("/proc/self/ns/cgroup", &ns) == -1 ||
	    stat(m.point, &root) == -1)
		return -1;
	(void)snprintf(out, size, "connectd-%jx-%jx-%jx", (uintmax_t)ns.st_ino,
	    (uintmax_t)root.st_dev, (uintmax_t)root.st_ino);
	return 0;
}

int
cgroup_base(char *out, size_t size, struct error *e)
{
	char own[PATH_MAX], file[PATH_MAX], name[64];
	int n;

	out[0] = '\0';
	if (cgroup_dir(getpid(), own, sizeof(own)) == -1 ||
	    base_name(name, sizeof(name)) == -1 || access(own, W_OK) == -1)
		return 0;
	controllers_enable(own);
	n = snprintf(out, size, "%s/%s", own, name);
	if (n < 0 || (size_t)n >= size) {
		out[0] = '\0';
		return error_set(e, "cgroup: its path is too long");
	}
	if ((mkdir(out, 0755) == -1 && errno != EEXIST) ||
	    access(out, W_OK) == -1) {
		out[0] = '\0';
		return 0;
	}
	/* Linux 5.14: without it a tree that forks cannot be ended at once. */
	(void)snprintf(
	    file, sizeof(file), "%.*s/cgroup.kill", PATH_MAX - 16, out);
	if (access(file, W_OK) == -1)
		out[0] = '\0';
	else
		controllers_enable(out);
	return 0;
}

bool
cgroup_is_seen(const char *path)
{
	struct mount m;

	return mount_find(&m) == 0 && path_contains(m.point, path);
}

int
cgroup_make(const char *path, struct error *e)
{
	if (mkdir(path, 0755) == -1)
		return error_errno(e, "cgroup %s", path);
	return 0;
}

int
cgroup_limit(
    const char *path, const char *name, const char *value, struct error *e)
{
	if (control_write(path, name, value) == -1)
		return error_errno(e, "cgroup %s: %s", path, name);
	return 0;
}

int
cgroup_populated(const char *path, struct error *e)
{
	char events[256];
	const char *at;

	if (control_read(path, "cgroup.events", events, sizeof(events)) == -1) {
		if (errno == ENODEV) /* removed between open and read */
			errno = ENOENT;
		return error_errno(e, "cgroup %s", path);
	}
	at = strstr(events, "populated ");
	if (at == NULL || (at[10] != '0' && at[10] != '1'))
		return error_set(
		    e, "cgroup %s: not said whether populated", path);
	return at[10] == '1';
}

int
cgroup_kill(const char *path, struct error *e)
{
	if (control_write(path, "cgroup.kill", "1") == -1)
		return error_errno(e, "cgroup %s: kill", path);
	return 0;
}

/* nftw(3) hands on what is not 0. */
static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (type == FTW_DP && rmdir(path) == -1 && errno != ENOENT)
		return errno;
	return 0;
}

int
cgroup_remove(const char *path, struct error *e)
{
	int rc = nftw(path, remove_one, OPEN_DIRS_MAX, FTW_DEPTH | FTW_PHYS);

	if (rc == 0 || (rc == -1 && errno == ENOENT))
		return 0;
	if (rc > 0)
		errno = rc;
	return error_errno(e, "cgroup %s", path);
}

int
cgroup_holds(const char *path, pid_t pid)
{
	char dir[PATH_MAX];

	if (cgroup_dir(pid, dir, sizeof(dir)) == -1)
		return -1;
	return path_contains(path, dir) ? 1 : 0;
}
