#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/xmalloc.h"
#include "supervisor/kernel.h"
#include "supervisor/locate.h"

/* DIR without its last component: "/usr/bin" gives "/usr", "/bin" gives "". */
static char *
parent_of(const char *dir)
{
	return xstrndup(dir, (size_t)(strrchr(dir, '/') - dir));
}

/* PATH becomes NULL when nothing is there. */
static char *
if_there(char *path)
{
	if (access(path, F_OK) == 0)
		return path;
	free(path);
	return NULL;
}

int
locate_program(
    const char *name, const char *folder, char **path, struct error *e)
{
	char own[PATH_MAX], *dir, *above;

	if (kernel_own_path(own, sizeof(own), e) == -1)
		return -1;
	dir = parent_of(own);
	above = strchr(dir, '/') != NULL ? parent_of(dir) : xstrdup("");
	(void)xasprintf(path, "%s/%s", dir, name);
	*path = if_there(*path);
	if (*path == NULL) {
		(void)xasprintf(path, "%s/libexec/connectd/%s", above, name);
		*path = if_there(*path);
	}
	if (*path == NULL) {
		(void)xasprintf(path, "%s/%s/%s", above, folder, name);
		*path = if_there(*path);
	}
	if (*path == NULL)
		(void)error_set(
		    e, "%s: not beside %s, nor in libexec/connectd", name, own);
	free(above);
	free(dir);
	return *path == NULL ? -1 : 0;
}
