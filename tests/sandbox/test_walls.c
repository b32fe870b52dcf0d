/*
 * From inside each role's walls: what it must not do, and what it must.
 * `none` has the words for files and no directory: what Landlock alone does.
 */
#include <errno.h>
#include <netdb.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/process.h"
#include "common/sandbox.h"
#include "dispatcher/profile.h"
#include "intake/profile.h"
#include "ledger/profile.h"
#include "mcpd/profile.h"
#include "outbox/profile.h"
#include "tests/sandbox/acts.h"
#include "tests/sandbox/scene.h"

#define SKIPPED 77 /* meson's word for it */

#define OK 0
#define KILL (SCENE_SIGNAL + SIGSYS)
#define ABORT (SCENE_SIGNAL + SIGABRT)
#define DENY EACCES /* by Landlock, or softly by the filter */

int __nss_configure_lookup(const char *, const char *);

static const struct sandbox_profile none_profile = {
    .words = SANDBOX_STDIO | SANDBOX_RPATH | SANDBOX_WPATH,
};

static const struct column {
	const char *name;
	const struct sandbox_profile *profile;
} columns[] = {
    {"ledger", &ledger_profile},
    {"intake", &intake_profile},
    {"outbox", &outbox_profile},
    {"dispatcher", &dispatcher_profile},
    {"mcpd", &mcpd_profile},
    {"none", &none_profile},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

struct row {
	const char *name;
	int (*act)(void);
	int least_abi; /* of Landlock */
	int expected[COLUMNS];
};

/* intake and outbox have the same walls, and so have dispatcher and mcpd. */
#define ROW(act, ledger, inet, plain, none)                    \
	{                                                      \
#act, act_##act, 2,                            \
		{                                              \
			ledger, inet, inet, plain, plain, none \
		}                                              \
	}
#define ROW_ABI(abi, act, ledger, inet, plain, none)           \
	{                                                      \
#act, act_##act, abi,                          \
		{                                              \
			ledger, inet, inet, plain, plain, none \
		}                                              \
	}
#define ALL(act, result) ROW(act, result, result, result, result)

static const struct row rows[] = {
    /*  act             ledger inet plain none */
    ROW(read_inside, OK, DENY, DENY, DENY),
    ROW(write_inside, OK, KILL, DENY, DENY),
    ROW(create_inside, OK, KILL, DENY, DENY),
    ROW(rename_inside, OK, KILL, DENY, DENY),
    ROW(unlink_inside, OK, KILL, DENY, DENY),
    ROW(list_inside, OK, DENY, DENY, DENY),
    ROW(read_outside, DENY, DENY, DENY, DENY),
    ROW(write_outside, DENY, KILL, DENY, DENY),
    ROW(create_outside, DENY, KILL, DENY, DENY),
    ROW(unlink_outside, DENY, KILL, KILL, DENY),
    ROW(rename_out, DENY, KILL, KILL, DENY),
    ROW(rename_in, DENY, KILL, KILL, DENY),
    ROW(list_outside, DENY, DENY, DENY, DENY),
    ROW(stat_outside, OK, OK, DENY, OK),
    ROW(read_etc, DENY, OK, DENY, DENY),
    ROW(read_proc, DENY, DENY, DENY, DENY),
    ROW(read_tmp, DENY, DENY, DENY, DENY),
    ROW(map_file, OK, KILL, KILL, OK),
    ROW(lock_open, OK, KILL, KILL, OK),
    ROW(sync_open, OK, KILL, KILL, OK),
    ROW(fchmod_open, OK, KILL, KILL, OK),
    ALL(fstat_empty_name, OK),
    ALL(link_out, KILL),
    ALL(truncate_outside, KILL),
    ALL(mkdir_inside, KILL),
    ALL(symlink_inside, KILL),
    ALL(fifo_inside, KILL),
    ALL(chmod_inside, KILL),
    ALL(chmod_outside, KILL),
    ALL(chown_outside, KILL),
    ALL(utimes_outside, KILL),
    ALL(setxattr_outside, KILL),
    ALL(chdir_outside, KILL),
    ALL(chroot_inside, KILL),
    ALL(lease_open, KILL),
    ALL(openat2_inside, KILL),
    ALL(name_to_handle, KILL),
    ALL(inotify, KILL),

    ALL(exec, KILL),
    ALL(exec_descriptor, KILL),
    ALL(fork_child, KILL),
    ALL(vfork_child, KILL),
    ALL(clone3_child, ENOSYS),
    ALL(new_namespace, KILL),
    ALL(enter_namespace, KILL),
    ALL(ptrace_victim, KILL),
    ALL(read_victim_memory, KILL),
    ALL(kill_victim, KILL),
    ALL(kill_all, KILL),
    ALL(tgkill_victim, KILL),
    ALL(sigqueue_victim, KILL),
    ALL(pidfd_victim, KILL),
    ALL(pidfd_signal, KILL),
    ALL(renice, KILL),
    ALL(affinity, KILL),
    ALL(become_root, KILL),
    ALL(become_group, KILL),
    ALL(drop_groups, KILL),
    ALL(raise_capabilities, KILL),
    ALL(new_session, KILL),
    ALL(be_dumpable, KILL),
    ALL(outlive_parent, KILL),
    ALL(rename_process, KILL),
    ALL(personality_exec, KILL),
    ALL(raise_limit, KILL),
    ALL(ask_limit, OK),
    ALL(executable_mapping, KILL),
    ALL(executable_page, KILL),
    ALL(protection_key, KILL),
    ALL(shared_segment, KILL),
    ALL(huge_memfd, KILL),
    ALL(another_filter, KILL),
    ALL(another_landlock, KILL),
    ALL(mount_there, KILL),
    ALL(unmount_there, KILL),
    ALL(load_bpf, KILL),
    ALL(io_ring, KILL),
    ALL(io_context, KILL),
    ALL(fault_handler, KILL),
    ALL(perf, KILL),
    ALL(add_a_key, KILL),
    ALL(module, KILL),
    ALL(kernel_log, KILL),
    ALL(set_clock, KILL),
    ALL(set_hostname, KILL),
    ALL(type_for_terminal, KILL),
    ALL(own_signal_to_pipe, KILL),
    ALL(timer, KILL),
    ALL(too_young_call, ENOSYS),
    ALL(foreign_call_number, ENOSYS),
    ALL(foreign_call_gate, KILL),
    ALL(raise_abort, ABORT),

    ROW(tcp_socket, KILL, OK, KILL, KILL),
    ROW(udp_socket, KILL, OK, KILL, KILL),
    ALL(raw_socket, KILL),
    ALL(unix_socket, DENY),
    ALL(netlink_socket, DENY),
    ALL(packet_socket, KILL),
    ALL(vsock_socket, KILL),
    ALL(bluetooth_socket, KILL),
    ROW(local_pair, KILL, OK, KILL, KILL),
    ALL(inet_pair, KILL),
    ALL(bind_tcp, KILL),
    ALL(bind_udp, KILL),
    ALL(listen_tcp, KILL),
    ALL(accept_tcp, KILL),
    ROW(connect_tcp, KILL, OK, KILL, KILL),
    ROW_ABI(6, connect_abstract, KILL, EPERM, KILL, KILL),
    ALL(send_to_address, KILL),
    ROW(tcp_option, KILL, OK, KILL, KILL),
    ALL(netfilter_option, KILL),
    ROW(make_pipe, OK, OK, KILL, KILL),

    ALL(work_memory, OK),
    ALL(work_clock, OK),
    ALL(work_events, OK),
    ROW(work_memfd, OK, OK, OK, KILL),
    ROW(work_pass_descriptor, OK, OK, OK, KILL),
    ROW(work_resolve_and_connect, KILL, OK, KILL, KILL),
    ROW(work_ask_dns, KILL, OK, KILL, KILL),
    ROW(work_sqlite, OK, KILL, DENY, DENY),
};

static int abi;

static int
enter(const void *arg)
{
	const struct sandbox_profile *profile = arg;
	struct sandbox_report report;
	struct error e = {0, ""};

	/* As a role prepares itself, while it still may. */
	tzset();
	(void)__nss_configure_lookup("hosts", "files dns");
	(void)setenv("RES_OPTIONS", "timeout:1 attempts:1", 1);
	scene.base = event_base_new();
	if (process_hide(&e) == -1 ||
	    sandbox_enter(profile, scene.inside, false, &report, &e) == -1) {
		(void)dprintf(STDERR_FILENO, "%s\n", e.text);
		return -1;
	}
	if (report.seccomp && report.no_new_privs && !report.dumpable &&
	    report.landlock_abi == abi)
		return 0;
	(void)dprintf(STDERR_FILENO, "the report tells of missing walls\n");
	return -1;
}

/* ---- a kernel that has no Landlock --------------------------------------- */

static int
enter_old_kernel(const struct sandbox_profile *profile, bool insecure,
    struct sandbox_report *report, struct error *e)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

	if (ctx == NULL ||
	    seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS),
		SCMP_SYS(landlock_create_ruleset), 0) != 0 ||
	    seccomp_load(ctx) != 0)
		return -1;
	seccomp_release(ctx);
	e->text[0] = '\0';
	return sandbox_enter(profile, scene.inside, insecure, report, e);
}

/* It is no start, and the text says of which wall. */
static int
enter_refused(const void *arg)
{
	struct sandbox_report report;
	struct error e;

	return enter_old_kernel(arg, false, &report, &e) == -1 &&
		strstr(e.text, "Landlock") != NULL
	    ? 0
	    : -1;
}

/* --insecure: the other walls stand, and the report lacks this one. */
static int
enter_insecure(const void *arg)
{
	struct sandbox_report report;
	struct error e;

	return enter_old_kernel(arg, true, &report, &e) == 0 &&
		report.landlock_abi == 0 && report.seccomp &&
		strstr(report.lacks, "refer(2)") != NULL &&
		strstr(report.lacks, "scope(6)") != NULL
	    ? 0
	    : -1;
}

static int
nothing(void)
{
	return 0;
}

static int
try_without_landlock(void)
{
	int wrong = 0;

	wrong += scene_expect("ledger", "start without Landlock", OK,
	    scene_try(enter_refused, &ledger_profile, nothing));
	wrong += scene_expect("ledger", "the same, insecure", OK,
	    scene_try(enter_insecure, &ledger_profile, nothing));
	wrong += scene_expect("ledger", "read_outside, insecure", OK,
	    scene_try(enter_insecure, &ledger_profile, act_read_outside));
	wrong += scene_expect("ledger", "exec, insecure", KILL,
	    scene_try(enter_insecure, &ledger_profile, act_exec));
	return wrong;
}

/* 0 as expected, 1 not. */
static int
try_one(const struct row *row, size_t column)
{
	return scene_expect(columns[column].name, row->name,
	    row->expected[column],
	    scene_try(enter, columns[column].profile, row->act));
}

int
main(void)
{
	int tried = 0, wrong = 0;
	const struct row *row;
	size_t column;

#ifdef INSECURE_BUILD
	(void)printf("walls: built without seccomp\n");
	return SKIPPED;
#endif
	abi = sandbox_landlock_abi();
	if (abi < 2) {
		(void)printf("walls: no Landlock of ABI 2 in this kernel\n");
		return SKIPPED;
	}
	scene_make();
	for (row = rows; row < rows + sizeof(rows) / sizeof(rows[0]); row++) {
		if (row->least_abi > abi)
			continue;
		for (column = 0; column < COLUMNS; column++, tried++)
			wrong += try_one(row, column);
	}
	wrong += try_without_landlock();
	tried += 4;
	scene_remove();
	(void)printf("walls: %d tried, %d not as expected\n", tried, wrong);
	return wrong != 0;
}
