/*
 * Seatbelt profiles of the roles. sandbox_init(3) is marked as deprecated and
 * has no successor for programs like ours; OpenSSH and others use it too.
 */
#include <errno.h>
#include <sandbox.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sandbox.h"
#include "common/xmalloc.h"

#pragma clang diagnostic ignored "-Wdeprecated-declarations"

#define PROFILE_SIZE 16384

/* A path as a string of the profile's language; -1 when it cannot be one. */
static int
profile_allow(char *out, const char *what, const char *path, struct error *e)
{
	size_t used = strlen(out);
	int n;

	if (strpbrk(path, "\"\\\n") != NULL)
		return error_set(e, "%s: not a name for a sandbox", path);
	n = snprintf(out + used, PROFILE_SIZE - used,
	    "(allow %s (subpath \"%s\"))\n", what, path);
	if (n < 0 || (size_t)n >= PROFILE_SIZE - used)
		return error_set(e, "sandbox: too many directories");
	return 0;
}

static int
profile_write(const struct sandbox_profile *profile, const char *state_dir,
    char *out, struct error *e)
{
	static const char head[] = "(version 1)\n(deny default)\n"
				   "(allow sysctl-read)\n";
	static const char inet[] =
	    "(allow network-outbound)\n(allow system-socket)\n"
	    "(allow mach-lookup (global-name \"com.apple.dnssd.service\"))\n";
	const size_t count = sizeof(profile->dirs) / sizeof(profile->dirs[0]);
	const struct sandbox_dir *d;

	(void)snprintf(out, PROFILE_SIZE, "%s%s", head,
	    (profile->words & SANDBOX_INET) != 0 ? inet : "");
	if ((profile->words & SANDBOX_INET) != 0 &&
	    profile_allow(out, "file-read*", "/private/etc", e) == -1)
		return -1;
	for (d = profile->dirs; d < profile->dirs + count && d->path != NULL;
	     d++) {
		if (profile_allow(out,
			d->access == SANDBOX_WRITE ? "file*" : "file-read*",
			d->path[0] == '\0' ? state_dir : d->path, e) == -1)
			return -1;
	}
	return 0;
}

int
sandbox_enter(const struct sandbox_profile *profile, const char *state_dir,
    bool insecure, struct sandbox_report *report, struct error *e)
{
	char *text = xcalloc(1, PROFILE_SIZE), *wrong = NULL;
	int rc = profile_write(profile, state_dir, text, e);

	memset(report, 0, sizeof(*report));
	(void)snprintf(
	    report->lacks, sizeof(report->lacks), "seccomp landlock");
	if (rc == 0 && sandbox_init(text, 0, &wrong) == -1) {
		rc = error_set(
		    e, "sandbox_init: %s", wrong == NULL ? "refused" : wrong);
		sandbox_free_error(wrong);
	}
	free(text);
	return insecure ? 0 : rc;
}

int
sandbox_landlock_abi(void)
{
	return 0;
}

/* An agent brings its own here (worker.confine is "agent" or "none"). */
int
sandbox_confine_worker(const char *const *read_dirs,
    const char *const *write_dirs, struct error *e)
{
	(void)read_dirs;
	(void)write_dirs;
	errno = ENOTSUP;
	return error_errno(e, "Landlock");
}
