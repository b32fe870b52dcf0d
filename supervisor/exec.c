#include <sys/stat.h>

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "supervisor/exec.h"
#include "supervisor/kernel.h"
#include "supervisor/locate.h"

static const char *const programs[] = {
    [ROLE_SUPERVISOR] = "connectd",
    [ROLE_LEDGER] = "connectd-ledger",
    [ROLE_DISPATCHER] = "connectd-dispatcher",
    [ROLE_OUTBOX] = "connectd-outbox",
    [ROLE_INTAKE] = "connectd-intake",
    [ROLE_MCPD] = "connectd-mcpd",
};
static_assert(sizeof(programs) / sizeof(programs[0]) == ROLE_COUNT,
    "a program for every role");

const char *
exec_name(enum role_id role)
{
	return programs[role];
}

/* A program that somebody else can write is somebody else's program. */
static int
exec_check(int fd, const char *path, struct error *e)
{
	const mode_t others = geteuid() == 0 ? S_IWGRP | S_IWOTH : S_IWOTH;
	struct stat st;

	if (fstat(fd, &st) == -1)
		return error_errno(e, "%s", path);
	if (!S_ISREG(st.st_mode))
		return error_set(e, "%s: not a file", path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return error_set(e, "%s: belongs to somebody else", path);
	if ((st.st_mode & others) != 0)
		return error_set(e, "%s: others can write it", path);
	return 0;
}

/* *PATH is the caller's when it is 0. */
static int
exec_open(
    const char *name, const char *folder, int *fd, char **path, struct error *e)
{
	*fd = -1;
	if (locate_program(name, folder, path, e) == -1)
		return -1;
	*fd = open(*path, O_RDONLY | O_CLOEXEC);
	if (*fd == -1)
		(void)error_errno(e, "%s", *path);
	else if (exec_check(*fd, *path, e) == 0)
		return 0;
	free(*path);
	return -1;
}

int
exec_open_all(struct supervisor *sv, struct error *e)
{
	char *path;
	int role;

	sv->role_exec[ROLE_SUPERVISOR] = -1;
	for (role = ROLE_SUPERVISOR + 1; role < ROLE_COUNT; role++) {
		if (exec_open(programs[role], role_name(role),
			&sv->role_exec[role], &path, e) == -1)
			return -1;
		free(path);
	}
	if (exec_open("connect-bridge", "mcpd", &sv->bridge_exec, &path, e) ==
	    -1)
		return -1;
	sv->bridge_path = path;
	return 0;
}

static bool
is_replaced(int fd, const char *path)
{
	struct stat opened, present;

	return fstat(fd, &opened) == 0 &&
	    (stat(path, &present) == -1 || opened.st_ino != present.st_ino ||
		opened.st_dev != present.st_dev ||
		opened.st_mtime != present.st_mtime);
}

bool
exec_changed(const struct supervisor *sv)
{
	struct error e;
	bool changed = false;
	char *path;
	int role;

	for (role = ROLE_SUPERVISOR + 1; role < ROLE_COUNT; role++) {
		if (locate_program(
			programs[role], role_name(role), &path, &e) == -1)
			continue; /* in the middle of being replaced */
		changed = changed || is_replaced(sv->role_exec[role], path);
		free(path);
	}
	return changed;
}
