#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/log.h"
#include "supervisor/become.h"

/* As far as a table of descriptors can have grown. */
#define DESCRIPTORS_MAX 65536
/* What programs that still use select() can live with. */
#define NOFILE_USUAL 1024

void
become_plain(void)
{
	struct sigaction act = {.sa_handler = SIG_DFL};
	sigset_t none;
	int n;

	(void)sigemptyset(&act.sa_mask);
	for (n = 1; n < NSIG; n++)
		(void)sigaction(n, &act, NULL); /* KILL, STOP, libc's own */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool
is_among(const int *list, size_t count, int fd)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (list[i] == fd)
			return true;
	}
	return false;
}

void
become_alone(const int *keep, size_t count)
{
	struct rlimit limit;
	int fd, most = DESCRIPTORS_MAX;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	    limit.rlim_cur < (rlim_t)most)
		most = (int)limit.rlim_cur;
	for (fd = 3; fd < most; fd++) {
		if (!is_among(keep, count, fd))
			(void)close(fd);
	}
}

void
become_modest(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	    limit.rlim_cur > NOFILE_USUAL) {
		limit.rlim_cur = NOFILE_USUAL;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	(void)umask(022);
}

int
become_account(const struct account *account)
{
	uid_t uid = account->uid;
	gid_t gid = account->gid;

	if (geteuid() == uid && getegid() == gid && geteuid() != 0)
		return 0;
	if (setgroups((size_t)account->group_count, account->groups) == -1 ||
	    setresgid(gid, gid, gid) == -1 || setresuid(uid, uid, uid) == -1)
		return -1;
	/* There must be no way back. */
	if (uid != 0 && setresuid((uid_t)-1, 0, (uid_t)-1) == 0) {
		errno = EPERM;
		return -1;
	}
	return 0;
}

bool
become_can_enter(const struct account *account, const char *dir)
{
	int status;
	pid_t pid = fork();

	if (pid == -1) {
		log_warn("fork");
		return false;
	}
	if (pid == 0) {
		become_alone(NULL, 0);
		if (become_account(account) == -1)
			exit_now(EXIT_WALLS);
		exit_now(access(dir, X_OK) == 0 ? EXIT_OK : EXIT_FAILED);
	}
	while (waitpid(pid, &status, 0) == -1) {
		if (errno != EINTR)
			return false;
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_OK;
}
