/*
 * connectd: forks, execs, makes sockets, signals and reaps, so that those
 * who read what strangers wrote need none of it. This file: main, the order
 * of the start, signals, the end.
 */
#include <sys/resource.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/build_id.h"
#include "common/exit.h"
#include "common/json.h"
#include "common/log.h"
#include "common/process.h"
#include "common/random.h"
#include "common/url.h"
#include "common/xmalloc.h"
#include "supervisor/accounts.h"
#include "supervisor/child.h"
#include "supervisor/control.h"
#include "supervisor/exec.h"
#include "supervisor/guests.h"
#include "supervisor/instance.h"
#include "supervisor/kernel.h"
#include "supervisor/lines.h"
#include "supervisor/notify.h"
#include "supervisor/options.h"
#include "supervisor/reload.h"
#include "supervisor/status.h"
#include "supervisor/stop.h"
#include "supervisor/supervisor.h"
#include "supervisor/watchdog.h"

#define BASECAMP_URL "https://3.basecampapi.com"
#define USER_AGENT \
	"connectd/" CONNECTD_VERSION " (https://github.com/basecamp/connectd)"
/* More are orphans of what workers start, and only they know how many. */
#define CHILDREN_FEW 256
#define FILES_MAX 1024

/* ---- the start, step by step --------------------------------------------- */

/* It would act as somebody else than the agent. */
static int
start_environment(struct supervisor *sv, struct error *e)
{
	const char *base = getenv("BASECAMP_BASE_URL");

	if (getenv("BASECAMP_TOKEN") != NULL)
		return error_set(e,
		    "BASECAMP_TOKEN is in the environment: "
		    "connectd acts with its agent's own credential; unset it");
	sv->user_agent = xstrdup(USER_AGENT);
	if (base == NULL) {
		sv->base_url = xstrdup(BASECAMP_URL);
		return 0;
	}
	if (url_check_base(base, strlen(base), e) == -1 ||
	    url_origin(base, strlen(base), &sv->base_url, e) == -1) {
		struct error why = *e;

		return error_set(e, "BASECAMP_BASE_URL: %s", why.text);
	}
	return 0;
}

static int
start_paths(struct supervisor *sv, struct error *e)
{
	return path_resolve(sv->options.profile, &sv->paths, e);
}

static int
start_settings(struct supervisor *sv, struct error *e)
{
	struct settings *s = settings_load(&sv->paths, &sv->options, e);

	if (s == NULL)
		return -1;
	reload_first(sv, s);
	return 0;
}

/* Only whether it will do: it is read again when the outbox starts. */
static int
start_credential(struct supervisor *sv, struct error *e)
{
	struct credential c;

	if (credential_load(&sv->paths, &c, e) == -1)
		return -1;
	credential_wipe(&c);
	return 0;
}

static int
start_identity(struct supervisor *sv, struct error *e)
{
	random_hex(sv->run_id, sizeof(sv->run_id) / 2);
	return identity_boot_id(sv->boot_id, e);
}

/* Without cgroups attempts are held by their process group alone. */
static int
start_cgroup(struct supervisor *sv, struct error *e)
{
	char base[4096];

	if (cgroup_base(base, sizeof(base), e) == -1)
		log_warnx("no cgroups: %s", e->text);
	else if (base[0] != '\0')
		sv->cgroup_base = xstrdup(base);
	return 0;
}

/*
 * A table of descriptors of a known size: enough for the links, sockets and
 * pipes of 32 tasks, and small enough to be closed before every exec.
 */
static int
start_process(struct supervisor *sv, struct error *e)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur =
		    FILES_MAX < files.rlim_max ? FILES_MAX : files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	sv->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (sv->null_fd == -1)
		return error_errno(e, "/dev/null");
	return kernel_harden(e);
}

/* From here on the loop exists and nothing that is printed blocks. */
static int
start_loop(struct supervisor *sv, struct error *e)
{
	struct event_config *config = event_config_new();

	if (config == NULL)
		return error_set(e, "no event configuration");
	(void)event_config_set_flag(config,
	    EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV |
		EVENT_BASE_FLAG_NO_CACHE_TIME);
	sv->base = event_base_new_with_config(config);
	event_config_free(config);
	if (sv->base == NULL)
		return error_set(e, "no event loop");
	lines_init(sv->base);
	watchdog_init(sv);
	reload_init(sv);
	return 0;
}

struct start_step {
	int (*run)(struct supervisor *sv, struct error *e);
	enum exit_code code; /* of the process, when it fails */
};

/*
 * The order: what can be wrong with words and files first, then the lock,
 * and only under it anything that another instance could be hurt by.
 */
static const struct start_step start_order[] = {
    {start_environment, EXIT_USAGE},
    {start_paths, EXIT_CONFIG},
    {start_settings, EXIT_CONFIG},
    {start_credential, EXIT_CONFIG},
    {accounts_resolve, EXIT_CONFIG},
    {instance_directories, EXIT_REFUSED},
    {instance_lock, EXIT_REFUSED},
    {start_identity, EXIT_CRASH},
    {start_cgroup, EXIT_CRASH},
    {exec_open_all, EXIT_REFUSED},
    {start_process, EXIT_CRASH},
    {start_loop, EXIT_CRASH},
    {control_open, EXIT_REFUSED},
    {guests_open, EXIT_REFUSED},
    {attempts_init, EXIT_REFUSED},
    {children_start, EXIT_CRASH},
};

static enum exit_code
start_code(const struct start_step *step, const struct error *e)
{
	if (e->code == EWOULDBLOCK || e->code == EADDRINUSE)
		return EXIT_BUSY;
	return step->code;
}

static _Noreturn void
start_failed(struct supervisor *sv, enum exit_code code, const char *text)
{
	guests_close(sv);
	if (sv->control != NULL)
		control_close(sv);
	lines_end();
	(void)dprintf(STDERR_FILENO, "connectd: fatal: %s\n", text);
	exit_now(code);
}

static void
start(struct supervisor *sv)
{
	struct error e = {0, ""};
	size_t i;

	for (i = 0; i < sizeof(start_order) / sizeof(start_order[0]); i++) {
		if (start_order[i].run(sv, &e) == 0)
			continue;
		start_failed(sv, start_code(&start_order[i], &e), e.text);
	}
	instance_note(sv);
}

/* ---- children have ended ------------------------------------------------- */

static void
reap_one(struct supervisor *sv, pid_t pid)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) ==
		-1 ||
	    info.si_pid == 0)
		return;
	if (!child_reaped(sv, &info) && !attempt_reaped(sv, &info))
		(void)waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG);
}

/* All of them: whoever is left out is never reaped. */
static int
children_list(pid_t **pids)
{
	int count, room = CHILDREN_FEW;

	for (*pids = NULL;; room *= 2) {
		*pids = xreallocarray(*pids, (size_t)room, sizeof(**pids));
		count = kernel_children(*pids, room);
		if (count < room)
			return count;
	}
}

/*
 * Each of our children by its number: a worker's leader may have to stay a
 * zombie, and waiting for any child would find nothing but that one.
 */
static void
on_child_signal(evutil_socket_t fd, short what, void *arg)
{
	struct supervisor *sv = arg;
	pid_t *pids;
	int i, count = children_list(&pids);

	(void)fd;
	(void)what;
	if (count == -1)
		fatal("the list of our children cannot be read");
	for (i = 0; i < count; i++)
		reap_one(sv, pids[i]);
	free(pids);
	stop_child_down(sv); /* if one was awaited */
}

/* ---- signals ------------------------------------------------------------- */

static void
on_stop_signal(evutil_socket_t number, short what, void *arg)
{
	(void)what;
	supervisor_stop(arg, (int)number);
}

static void
on_reload_signal(evutil_socket_t number, short what, void *arg)
{
	struct error e;

	(void)number;
	(void)what;
	if (supervisor_reload(arg, &e) == -1)
		log_warnx("reload: %s", e.text);
}

static const struct {
	int number;
	void (*handle)(evutil_socket_t, short, void *);
} signals[] = {
    {SIGCHLD, on_child_signal},
    {SIGINT, on_stop_signal},
    {SIGTERM, on_stop_signal},
    {SIGHUP, on_reload_signal},
};
#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

static void
signals_take(struct supervisor *sv, struct event *events[SIGNAL_COUNT])
{
	size_t i;

	for (i = 0; i < SIGNAL_COUNT; i++) {
		events[i] = evsignal_new(
		    sv->base, signals[i].number, signals[i].handle, sv);
		if (events[i] == NULL || evsignal_add(events[i], NULL) == -1)
			fatalx("no event for signal %d", signals[i].number);
	}
	/* One may have ended between its fork and now. */
	event_active(events[0], EV_SIGNAL, 1);
}

void
supervisor_stop(struct supervisor *sv, int signal)
{
	if (sv->stop_signal != 0 && signal != 0) {
		log_warnx("second signal: ending at once");
		stop_now(sv, 128 + signal);
	}
	if (sv->stopping && signal == 0)
		return;
	sv->stop_signal = signal;
	if (sv->exit_code == EXIT_OK && signal != 0)
		sv->exit_code = 128 + signal;
	log_info("stopping%s%s", signal == 0 ? "" : ": ",
	    signal == 0 ? "" : strsignal(signal));
	if (sv->stopping)
		return;
	sv->stopping = true;
	stop_begin(sv);
}

void
supervisor_walls_missing(struct supervisor *sv)
{
	if (sv->was_ready || sv->stopping)
		return;
	sv->exit_code = EXIT_WALLS;
	supervisor_stop(sv, 0);
}

/* ---- who is ready -------------------------------------------------------- */

/*
 * A child that only a person can help, or that fails again and again, is
 * shown, not waited for.
 */
static bool
all_are_ready(const struct supervisor *sv)
{
	const struct child *c;
	int role;

	for (role = ROLE_SUPERVISOR + 1; role < ROLE_MCPD; role++) {
		c = sv->children[role];
		if (c == NULL ||
		    (c->state != CHILD_READY && !child_is_failing(c)))
			return false;
	}
	return true;
}

/* For status after the run; the ledger may be the one that is not there. */
static void
note_running(struct supervisor *sv)
{
	struct msg m = {.type = MSG_CONNECTION};

	m.connection.state = "running";
	m.connection.pid = getpid();
	(void)peer_request(sv->children[ROLE_LEDGER]->peer, &m, NULL, NULL);
}

void
supervisor_child_changed(struct supervisor *sv, struct child *c)
{
	char summary[512];

	if (!sv->was_ready && !sv->stopping && all_are_ready(sv)) {
		sv->was_ready = true;
		log_info("ready after %lld ms",
		    (long long)(clock_monotonic_ms() - sv->started_ms));
		note_running(sv);
		(void)notify_send("READY=1\n");
	}
	status_summary(sv, summary, sizeof(summary));
	notify_status(summary);
	control_child_changed(sv->control, c);
}

/* ---- the whole ----------------------------------------------------------- */

/*
 * Descriptors 0, 1 and 2 must be something, and nothing of ours may be what a
 * child has its link and its extra one as: dup2() in the child would hit it.
 */
static void
first_descriptors(void)
{
	int fd;

	process_close_from(STDERR_FILENO + 1);
	do {
		fd = open("/dev/null", O_RDWR);
		if (fd == -1)
			exit_now(EXIT_CRASH);
		if (fd > STDERR_FILENO)
			(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	} while (fd < CHILD_EXTRA_FD);
}

static void
log_libevent(int severity, const char *text)
{
	if (severity >= EVENT_LOG_WARN)
		log_warnx("libevent: %s", log_safe(text));
}

static _Noreturn void
finish(struct supervisor *sv)
{
	int code = sv->exit_code;

	log_info("stopped");
	lines_end();
	instance_release(sv);
	(void)close(sv->lock_fd);
	guests_close(sv);
	control_close(sv); /* whoever waits for our end sees it by this */
	exit_now((enum exit_code)code);
}

static _Noreturn void
supervise(struct supervisor *sv)
{
	struct event *events[SIGNAL_COUNT];

	start(sv);
	signals_take(sv, events);
	(void)event_base_dispatch(sv->base);
	finish(sv);
}

int
main(int argc, char *argv[])
{
	static struct supervisor sv;
	struct error e;

	first_descriptors();
	/* What jansson lets go of a credential while it reads, is wiped. */
	json_set_alloc_funcs(malloc, xfree_wiped);
	(void)signal(SIGPIPE, SIG_IGN);
	log_init("connectd", LOG_LEVEL_INFO);
	event_set_log_callback(log_libevent);
	switch (options_read(argc, argv, &sv.options, &e)) {
	case OPTIONS_HELP:
		(void)fputs(options_usage, stdout);
		return EXIT_OK;
	case OPTIONS_VERSION:
		(void)printf("connectd %s\n", build_id);
		return EXIT_OK;
	case OPTIONS_WRONG:
		(void)fprintf(
		    stderr, "connectd: %s\n%s", e.text, options_usage);
		return EXIT_USAGE;
	case OPTIONS_RUN:
		break;
	}
	notify_init();
	TAILQ_INIT(&sv.mcpds);
	LIST_INIT(&sv.attempts);
	sv.is_root = geteuid() == 0;
	sv.lock_fd = -1;
	sv.started_ms = clock_monotonic_ms();
	clock_stamp(sv.started_at);
	supervise(&sv);
}
