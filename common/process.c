#include <sys/stat.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/process.h"

#define NOFILE_LEAST 256

/*
 * Ignored signals and the mask survive exec: nothing of what our parent was
 * started under may reach us. The supervisor answers INT, TERM and HUP for
 * all of us, and a dead peer is an EPIPE.
 */
static int
signals_reset(struct error *e)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	struct sigaction act = {.sa_handler = SIG_DFL};
	sigset_t none;
	size_t i;
	int n;

	(void)sigemptyset(&act.sa_mask);
	for (n = 1; n < NSIG; n++)
		(void)sigaction(n, &act, NULL); /* KILL, STOP, libc's own */
	act.sa_handler = SIG_IGN;
	for (i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
		if (sigaction(ignored[i], &act, NULL) == -1)
			return error_errno(e, "sigaction");
	}
	(void)sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) == -1)
		return error_errno(e, "sigprocmask");
	return 0;
}

int
process_settle(struct error *e)
{
	/* A session leader already: our parent did it between fork and exec. */
	if (setsid() == -1 && getsid(0) != getpid())
		return error_errno(e, "setsid");
	if (signals_reset(e) == -1)
		return -1;
	(void)umask(077);
	return 0;
}

static int
limit_set(int resource, const char *name, rlim_t value, struct error *e)
{
	struct rlimit limit = {.rlim_cur = value, .rlim_max = value};

	if (setrlimit(resource, &limit) == -1)
		return error_errno(e, "limit %s", name);
	return 0;
}

int
process_limit(rlim_t nofile, bool writes_files, struct error *e)
{
	struct rlimit now;

	if (getrlimit(RLIMIT_NOFILE, &now) == -1)
		return error_errno(e, "limit NOFILE");
	if (now.rlim_max != RLIM_INFINITY && now.rlim_max < nofile)
		nofile = now.rlim_max;
	if (nofile < NOFILE_LEAST)
		return error_set(e,
		    "limit NOFILE: %llu descriptors are too few, at least "
		    "%d are needed",
		    (unsigned long long)nofile, NOFILE_LEAST);
	if (limit_set(RLIMIT_NOFILE, "NOFILE", nofile, e) == -1 ||
	    limit_set(RLIMIT_CORE, "CORE", 0, e) == -1)
		return -1;
	if (!writes_files && limit_set(RLIMIT_FSIZE, "FSIZE", 0, e) == -1)
		return -1;
	return 0;
}
