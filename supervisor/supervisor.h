/*
 * The supervisor's own state and what its subjects say to each other. It
 * forks, execs, signals and reaps; it parses nothing remote.
 *
 *	supervisor.c	main, start order, signals
 *	stop.c		the orderly stop, role after role
 *	options.c	the command line of `connectd run`
 *	settings.c	connect.json and credentials.json, strictly
 *	reload.c	the configuration in force: generations, re-reading
 *	accounts.c	the roles' users and the worker's account
 *	exec.c		the executables, opened at start; locate.c: where
 *	kernel_*.c	what only this kernel's own calls can do
 *	child.c		a child's life: the state table, restart
 *	child_spawn.c	how a child comes to be: fork, exec, what it is told
 *	child_hear.c	what a child says on descriptor 3
 *	children.c	all of them: start, finding one, reaping
 *	links.c		the link matrix: who may talk to whom, made anew
 *	watchdog.c	PING and what follows silence
 *	notify.c	sd_notify
 *	lines.c		stdout and stderr, never waited for
 *	instance.c	the instance lock
 *	control.c	the control socket: who may connect
 *	door.c		a socket in the run-time directory, kept reachable
 *	guests.c	mcpds that others start: who may come, their links
 *	hand.c		what children die with in hand, and whose fault it is
 *	client.c	one connection; control_wire.h what is spoken
 *	commands.c	what it may ask for
 *	status.c	the supervisor's part of `status`
 *	attempt.c	an attempt's life: its mcpd, worker, tree, end
 *	worker.c	argv, environment, declaration and spawn of a worker
 *	session.c	session and temp directories
 *	listener.c	the task's socket: vetting the bridge's connection
 *	tree.c		ending a process tree and proving that it is gone
 */
#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

#include <event2/event.h>
#include <sys/queue.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/config.h"
#include "common/error.h"
#include "common/identity.h"
#include "common/paths.h"
#include "common/peer.h"
#include "common/sandbox.h"
#include "supervisor/past.h"

/* `connectd run`'s words. */
struct options {
	char *profile;
	struct config_ids projects; /* --project; empty: all */
	int64_t since;
	char *driver; /* NULL: connect.json's */
	bool insecure;
};

struct string_list {
	char **list; /* NULL-ended */
	size_t count;
};

/* connect.json as parsed; `config` is what children get of it. */
struct settings {
	struct config *config;
	struct {
		char *driver;               /* "claude" */
		struct string_list command; /* argv prefix; may be empty */
		char *user;                 /* NULL: not set */
		char *confine;              /* landlock agent none */
		struct string_list read, write;
		struct string_list env; /* NAME=value, sorted */
		char *mcp_servers;      /* JSON object text, "{}" */
		struct string_list launcher;
		bool launcher_keeps_tree;
	} worker;
	struct string_list worker_limits; /* "memory.max=2G" */
	bool mcp_socket;
};

/* The agent's OAuth client; wiped once it was handed over. */
struct credential {
	char *client_id, *client_secret, *token_endpoint, *scope, *resource;
};

struct child;
struct attempt;
struct control;
struct guests;
struct reload;
struct stop;
struct watchdog;

/* Whom a role becomes; the supervisor's own ids when not root. */
struct role_ids {
	uid_t uid;
	gid_t gid;
};

/* The account a worker runs as, read once from passwd. */
struct account {
	uid_t uid;
	gid_t gid;
	char *name, *home, *shell;
	gid_t *groups;
	int group_count;
};

struct supervisor {
	struct event_base *base;
	struct options options;
	struct paths paths;
	char *base_url, *user_agent;
	char run_id[33];
	char boot_id[BOOT_ID_LEN + 1];
	char *state_dir;
	struct settings *settings; /* newest that loaded */
	int64_t generation;        /* of the configuration last sent */
	bool config_unreadable;
	bool is_root;
	struct account worker_account; /* the person's own when not root */
	char *cgroup_base;             /* NULL without cgroups */
	struct role_ids role_ids[ROLE_COUNT];
	int role_exec[ROLE_COUNT]; /* executables, opened at start */
	int bridge_exec;           /* connect-bridge, opened at start */
	char *bridge_path;         /* its path, for the declaration */
	int lock_fd;
	struct child *children[ROLE_COUNT]; /* all but supervisor and mcpd */
	TAILQ_HEAD(, child) mcpds;
	int64_t mcpd_lives;
	LIST_HEAD(, attempt) attempts;
	int null_fd; /* /dev/null, what children get as 0, 1 and 2 */
	int64_t started_ms;
	char started_at[CLOCK_STAMP_SIZE];
	bool was_ready; /* once, of all */
	bool stopping;
	int stop_signal; /* the newest; 0: none came yet */
	int exit_code;
	struct control *control;
	struct guests *guests;
	struct reload *reload;
	struct watchdog *watchdog;
	struct stop *stop;
};

/* ---- settings.c --------------------------------------------------------- */

/*
 * Read and check connect.json of PATHS strictly (admission.md 5.2, 5.3, 5.7).
 * NULL with a text that names file, line and key.
 */
struct settings *settings_load(
    const struct paths *paths, const struct options *options, struct error *e);
void settings_free(struct settings *s);
/* credentials.json, owner-only. Wipe with credential_wipe(). */
int credential_load(
    const struct paths *paths, struct credential *c, struct error *e);
void credential_wipe(struct credential *c);

/* ---- child.c, children.c ------------------------------------------------ */

/* Start the five roles; their READY comes through the loop. */
int children_start(struct supervisor *sv, struct error *e);
/*
 * Start the mcpd of an attempt, TOKEN (taken over) as its descriptor. READY
 * and its end come to attempt_mcpd_ready() and attempt_mcpd_exited(); the
 * child is freed when the latter is called. Fails while the attempt's mcpd
 * before it is not reaped.
 */
struct child *child_spawn_mcpd(
    struct supervisor *sv, const char *attempt, int token, struct error *e);
/* Tell it to drain and exit (STOP); kill it after the bound. */
void child_drain(struct child *c, int64_t bound_ms);
struct peer *child_peer(struct child *c);
/* The peer of a role, NULL while it is not there. */
struct peer *supervisor_peer(struct supervisor *sv, enum role_id role);
/* SIGCHLD for a pid that is a child's: reap it and act. False: not ours. */
bool child_reaped(struct supervisor *sv, const siginfo_t *info);
/* Send the newest configuration to all; each SPAWN names its generation. */
void children_configure(struct supervisor *sv);

/* ---- attempt.c ---------------------------------------------------------- */

/*
 * Handlers of what the dispatcher asks; in child.c's table. ARG is the
 * struct supervisor, as for every handler of a child's messages.
 */
void on_spawn_mcpd(struct peer *peer, struct msg *m, void *arg);
void on_spawn_worker(struct peer *peer, struct msg *m, void *arg);
void on_end_tree(struct peer *peer, struct msg *m, void *arg);
void on_drop_declaration(struct peer *peer, struct msg *m, void *arg);
void on_stop_serving(struct peer *peer, struct msg *m, void *arg);
void on_recovered(struct peer *peer, struct msg *m, void *arg);

/* At start; what an earlier run left goes when its attempts are recovered. */
int attempts_init(struct supervisor *sv, struct error *e);
void attempt_mcpd_ready(struct supervisor *sv, const char *attempt);
void attempt_mcpd_exited(struct supervisor *sv, const char *attempt);
/*
 * waitid(WNOWAIT) saw INFO's pid end. True when it is a worker's leader, which
 * is then reaped here when its group is gone; until then this is called again
 * for it at every SIGCHLD. False: the caller reaps.
 */
bool attempt_reaped(struct supervisor *sv, const siginfo_t *info);
/*
 * The dispatcher is dead, its link read to the end; called once for each
 * death, before a successor is started. Its workers' pipes are gone.
 */
void attempts_dispatcher_gone(struct supervisor *sv);
/* The run ends and no dispatcher is left: end every tree, without grace. */
void attempts_end(struct supervisor *sv);
/* It ends now: SIGKILL to every tree. */
void attempts_kill(struct supervisor *sv);
/* Is PID (or a parent of it, or its cgroup) a worker's? 1, 0, -1 unknown. */
int attempts_hold_pid(struct supervisor *sv, pid_t pid);
/*
 * What has become of an attempt: FATE_OPEN while this run has it and may end
 * it; FATE_HELD also for one that it never had: of an earlier run, and nobody
 * has looked at it, or only being launched.
 */
enum fate attempts_fate(const struct supervisor *sv, const char *attempt);
/* Has this run been asked for it, be it to start it or to end it? */
bool attempts_had(const struct supervisor *sv, const char *attempt);
/*
 * Was the tree of an attempt signalled while it was ended? False: this run has
 * it no more, and nothing is known.
 */
bool attempts_signaled(
    const struct supervisor *sv, const char *attempt, bool *was_signaled);
/*
 * What can be proved to run of an attempt, by the tree that this run has of it
 * and by what the ledger KNOWS of it: in words, or NULL for nothing. What
 * cannot be proved may run all the same.
 */
const char *recovery_finds(const struct supervisor *sv, const char *attempt,
    const struct msg_identity_is *known);
/* A person has settled an attempt that was held here: it is let go. */
void attempts_settled(struct supervisor *sv, const char *attempt);
/* How many attempts still have processes. */
size_t attempts_live(const struct supervisor *sv);
/* With those of earlier runs that are being ended: who outlives a stop? */
size_t attempts_left(const struct supervisor *sv);
/*
 * Log text that came from a role that hears workers, with every value a
 * worker's environment holds taken out. The caller frees it.
 */
char *attempts_redact(struct supervisor *sv, const char *text);

/* ---- supervisor.c ------------------------------------------------------- */

/* Orderly, bounded; at a second signal at once. SIGNAL 0: without one. */
void supervisor_stop(struct supervisor *sv, int signal);
/* A child's state is another one: status, READY=1, whoever waits for it. */
void supervisor_child_changed(struct supervisor *sv, struct child *c);
/* A child could not put its walls up: at the start that ends the run. */
void supervisor_walls_missing(struct supervisor *sv);
/* Re-read connect.json (and who may direct) and credentials.json. */
int supervisor_reload(struct supervisor *sv, struct error *e);

#endif
