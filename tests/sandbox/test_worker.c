/*
 * From inside a worker's confinement: its route (inside) and what it was
 * given to read, the system, and nothing else.
 */
#include <sys/prctl.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/sandbox.h"
#include "tests/sandbox/acts.h"
#include "tests/sandbox/scene.h"

#define SKIPPED 77

#define OK 0
#define DENY EACCES

static const struct row {
	const char *name;
	int (*act)(void);
	int least_abi;
	int expected;
} rows[] = {
#define ROW(act, expected)                   \
	{                                    \
#act, act_##act, 2, expected \
	}
#define ROW_ABI(abi, act, expected)            \
	{                                      \
#act, act_##act, abi, expected \
	}
    ROW(read_inside, OK),
    ROW(write_inside, OK),
    ROW(create_inside, OK),
    ROW(rename_inside, OK),
    ROW(unlink_inside, OK),
    ROW(list_inside, OK),
    ROW(mkdir_inside, OK),
    ROW(symlink_inside, OK),
    ROW(fifo_inside, OK),
    ROW(chmod_inside, OK),
    ROW(socket_inside, OK),
    ROW(exec_inside, OK),
    ROW(read_readable, OK),
    ROW(exec_readable, OK),
    ROW(write_readable, DENY),
    ROW(create_readable, DENY),
    ROW(read_hostname, OK),
    ROW(read_etc, OK),
    ROW(read_proc, OK),
    ROW(write_proc, DENY),
    ROW(write_null, OK),
    ROW(open_terminal, OK),
    ROW(write_other_device, DENY),
    ROW(exec, OK),
    ROW(fork_child, OK),
    ROW(shell_story, OK),
    ROW(read_outside, DENY),
    ROW(write_outside, DENY),
    ROW(create_outside, DENY),
    ROW(unlink_outside, DENY),
    ROW(list_outside, DENY),
    ROW(exec_outside, DENY),
    ROW(rename_out, DENY),
    ROW(rename_in, DENY),
    ROW(link_out, EXDEV),
    ROW(read_tmp, DENY),
    ROW_ABI(3, truncate_outside, DENY),
    ROW(mount_there, EPERM),
    ROW(ptrace_victim, EPERM),
    ROW_ABI(6, kill_victim, EPERM),
    ROW_ABI(6, tgkill_victim, EPERM),
    ROW_ABI(6, sigqueue_victim, EPERM),
    ROW(connect_tcp, OK),
    ROW(bind_tcp, OK),
    ROW(unix_socket, OK),
    ROW(connect_abstract, OK),
    ROW(work_resolve_and_connect, OK),
    ROW(raise_abort, SCENE_SIGNAL + 6),
    /* What Landlock does not bound, as the documentation says. */
    ROW(stat_outside, OK),
    ROW(chmod_outside, OK),
};

static int
enter(const void *arg)
{
	const char *read_dirs[] = {scene.readable, NULL};
	const char *write_dirs[] = {scene.inside, NULL};
	struct error e = {0, ""};

	(void)arg;
	if (sandbox_confine_worker(read_dirs, write_dirs, &e) == -1) {
		(void)dprintf(STDERR_FILENO, "%s\n", e.text);
		return -1;
	}
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : -1;
}

static int
nothing(void)
{
	return 0;
}

/* A directory that is not there is an error that names it. */
static int
enter_missing(const void *arg)
{
	const char *none[] = {NULL};
	const char *missing[] = {"/nonexistent/dir", NULL};
	struct error e = {0, ""};

	(void)arg;
	if (sandbox_confine_worker(none, missing, &e) == 0 ||
	    strstr(e.text, missing[0]) == NULL || e.code != ENOENT)
		return 0;
	return -1;
}

int
main(void)
{
	int tried = 1, wrong = 0, abi = sandbox_landlock_abi();
	size_t i;

	if (abi < 2) {
		(void)printf("worker: no Landlock of ABI 2 in this kernel\n");
		return SKIPPED;
	}
	scene_make();
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].least_abi > abi)
			continue;
		tried++;
		wrong += scene_expect("worker", rows[i].name, rows[i].expected,
		    scene_try(enter, NULL, rows[i].act));
	}
	wrong += scene_expect("worker", "a missing directory", SCENE_NO_WALLS,
	    scene_try(enter_missing, NULL, nothing));
	scene_remove();
	(void)printf("worker: %d tried, %d not as expected\n", tried, wrong);
	return wrong != 0;
}
