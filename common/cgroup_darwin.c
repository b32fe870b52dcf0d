/* There are none: cgroup_base() says so, and nothing else is ever called. */
#include <errno.h>

#include "common/identity.h"

int
cgroup_base(char *out, size_t size, struct error *e)
{
	(void)e;
	if (size > 0)
		out[0] = '\0';
	return 0;
}

static int
no_cgroups(struct error *e)
{
	errno = ENOTSUP;
	return error_errno(e, "cgroups");
}

bool
cgroup_is_seen(const char *path)
{
	return false;
}

int
cgroup_make(const char *path, struct error *e)
{
	(void)path;
	return no_cgroups(e);
}

int
cgroup_limit(
    const char *path, const char *name, const char *value, struct error *e)
{
	(void)path;
	(void)name;
	(void)value;
	return no_cgroups(e);
}

int
cgroup_populated(const char *path, struct error *e)
{
	(void)path;
	return no_cgroups(e);
}

int
cgroup_kill(const char *path, struct error *e)
{
	(void)path;
	return no_cgroups(e);
}

int
cgroup_remove(const char *path, struct error *e)
{
	(void)path;
	return no_cgroups(e);
}

int
cgroup_holds(const char *path, pid_t pid)
{
	(void)path;
	(void)pid;
	return -1;
}
