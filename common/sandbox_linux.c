#include <sys/prctl.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/landlock.h"
#include "common/sandbox.h"
#include "common/seccomp_filter.h"

/* Below it a rename between directories cannot be allowed. */
#define ABI_LEAST 2

/* Where /etc/resolv.conf leads; missing ones are skipped. */
static const char *const resolver_dirs[] = {
    "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"};

/* What any program needs to run at all. */
static const char *const system_dirs[] = {"/usr", "/bin", "/sbin", "/lib",
    "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc", "/sys", "/dev"};

/* Devices that hold nothing of anyone else's. */
static const char *const worker_devices[] = {
    "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts"};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

int
sandbox_landlock_abi(void)
{
	return landlock_abi();
}

static int
allow_all(const struct landlock *l, const char *const *paths, size_t count,
    unsigned int gives, struct error *e)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (landlock_allow(l, paths[i], gives, true, e) == -1)
			return -1;
	}
	return 0;
}

/* The rules of a profile's directories, and of what names need under INET. */
static int
profile_rules(const struct landlock *l, const struct sandbox_profile *profile,
    const char *state_dir, struct error *e)
{
	static const char *const etc[] = {"/etc"};
	const struct sandbox_dir *d;
	unsigned int gives;

	for (d = profile->dirs;
	     d < profile->dirs + COUNT(profile->dirs) && d->path != NULL; d++) {
		gives = LANDLOCK_GIVES_READ;
		if (d->access == SANDBOX_WRITE)
			gives |= LANDLOCK_GIVES_WRITE;
		if (landlock_allow(l, d->path[0] == '\0' ? state_dir : d->path,
			gives, false, e) == -1)
			return -1;
	}
	if ((profile->words & SANDBOX_INET) == 0)
		return 0;
	if (allow_all(l, etc, COUNT(etc), LANDLOCK_GIVES_READ, e) == -1)
		return -1;
	return allow_all(
	    l, resolver_dirs, COUNT(resolver_dirs), LANDLOCK_GIVES_READ, e);
}

static int
enter_landlock(const struct sandbox_profile *profile, const char *state_dir,
    struct error *e)
{
	unsigned int closes = LANDLOCK_CLOSES_BIND | LANDLOCK_CLOSES_SIGNALS |
	    LANDLOCK_CLOSES_ABSTRACT;
	struct landlock l;

	/* Not below INET: the port of a server is the server's choice. */
	if ((profile->words & SANDBOX_INET) == 0)
		closes |= LANDLOCK_CLOSES_CONNECT;
	if (landlock_prepare(&l, closes, e) == -1)
		return -1;
	if (profile_rules(&l, profile, state_dir, e) == -1 ||
	    landlock_enter(&l, e) == -1) {
		landlock_drop(&l);
		return -1;
	}
	return 0;
}

static int
wall_landlock(const struct sandbox_profile *profile, const char *state_dir,
    bool insecure, struct sandbox_report *report, struct error *e)
{
	int abi = landlock_abi();

	landlock_lacks(abi, report->lacks, sizeof(report->lacks));
	if (abi < ABI_LEAST && !insecure)
		return error_set(e,
		    "Landlock: ABI %d is needed, the kernel "
		    "has %d",
		    ABI_LEAST, abi);
	if (abi > 0 && enter_landlock(profile, state_dir, e) == -1)
		return insecure ? 0 : -1;
	report->landlock_abi = abi;
	return 0;
}

static int
wall_seccomp(const struct sandbox_profile *profile, bool insecure,
    struct sandbox_report *report, struct error *e)
{
#ifdef INSECURE_BUILD
	/* Sanitizers make calls of their own, and need ptrace. */
	(void)profile;
	(void)insecure;
	(void)e;
	report->seccomp = false;
	return 0;
#else
	if (seccomp_enter(profile->words, e) == -1)
		return insecure ? 0 : -1;
	report->seccomp = true;
	return 0;
#endif
}

int
sandbox_enter(const struct sandbox_profile *profile, const char *state_dir,
    bool insecure, struct sandbox_report *report, struct error *e)
{
	memset(report, 0, sizeof(*report));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 && !insecure)
		return error_errno(e, "no_new_privs");
	if (wall_landlock(profile, state_dir, insecure, report, e) == -1)
		return -1;
	/* Asked of the kernel, while it may be asked. */
	report->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
	report->dumpable = prctl(PR_GET_DUMPABLE) != 0;
	return wall_seccomp(profile, insecure, report, e);
}

/* The operator's or the agent's own directories. */
static int
allow_dirs(const struct landlock *l, const char *const *dirs,
    unsigned int gives, struct error *e)
{
	for (; *dirs != NULL; dirs++) {
		if (landlock_allow(l, *dirs, gives, false, e) == -1)
			return -1;
	}
	return 0;
}

static int
worker_rules(const struct landlock *l, const char *const *read_dirs,
    const char *const *write_dirs, struct error *e)
{
	const unsigned int reads = LANDLOCK_GIVES_READ | LANDLOCK_GIVES_EXECUTE;

	if (allow_all(l, system_dirs, COUNT(system_dirs), reads, e) == -1 ||
	    allow_all(l, resolver_dirs, COUNT(resolver_dirs),
		LANDLOCK_GIVES_READ, e) == -1 ||
	    allow_all(l, worker_devices, COUNT(worker_devices),
		LANDLOCK_GIVES_READ | LANDLOCK_GIVES_WRITE |
		    LANDLOCK_GIVES_IOCTL,
		e) == -1)
		return -1;
	if (allow_dirs(l, read_dirs, reads, e) == -1)
		return -1;
	return allow_dirs(l, write_dirs, reads | LANDLOCK_GIVES_WRITE, e);
}

int
sandbox_confine_worker(const char *const *read_dirs,
    const char *const *write_dirs, struct error *e)
{
	struct landlock l;

	if (landlock_abi() < ABI_LEAST)
		return error_set(e,
		    "Landlock: ABI %d is needed, the kernel "
		    "has %d",
		    ABI_LEAST, landlock_abi());
	if (landlock_prepare(&l, LANDLOCK_CLOSES_SIGNALS, e) == -1)
		return -1;
	if (worker_rules(&l, read_dirs, write_dirs, e) == -1 ||
	    landlock_enter(&l, e) == -1) {
		landlock_drop(&l);
		return -1;
	}
	return 0;
}
