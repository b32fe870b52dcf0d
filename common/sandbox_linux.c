#include <sys/prctl.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/landlock.h"
#include "common/sandbox.h"
#include "common/seccomp_filter.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* The rules of a profile's directories, and of what names need under INET. */
static int
profile_rules(const struct landlock *l, const struct sandbox_profile *profile,
    const char *state_dir, struct error *e)
{
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
	if (landlock_allow(l, "/etc", LANDLOCK_GIVES_READ, true, e) == -1)
		return -1;
	return landlock_allow_resolver(l, e);
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
	if (abi < LANDLOCK_ABI_LEAST && !insecure)
		return error_set(e,
		    "Landlock: ABI %d is needed, the kernel "
		    "has %d",
		    LANDLOCK_ABI_LEAST, abi);
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
