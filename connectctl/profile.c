#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/paths.h"
#include "common/xmalloc.h"
#include "connectctl/profile.h"

struct names {
	char **list;
	size_t count;
};

static void
names_add(struct names *n, const char *name)
{
	size_t i;

	for (i = 0; i < n->count; i++) {
		if (strcmp(n->list[i], name) == 0)
			return;
	}
	n->list = xreallocarray(n->list, n->count + 1, sizeof(*n->list));
	n->list[n->count++] = xstrdup(name);
}

static void
names_free(struct names *n)
{
	while (n->count > 0)
		free(n->list[--n->count]);
	free(n->list);
}

static int
names_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What is not ours to look into may be one; it is for connectd to say. */
static bool
is_profile(const struct path_home *home, const char *name)
{
	struct stat st;
	char *path;
	int rc;

	if (!path_profile_ok(name))
		return false;
	(void)xasprintf(&path, "%s/%s/%s", home->dir, name, home->file);
	rc = lstat(path, &st);
	free(path);
	return rc == 0 || errno == EACCES;
}

/* What anybody may have put into /tmp names no profile of ours. */
static bool
is_trusted(const struct path_home *home)
{
	struct stat st;

	return home->is_system ||
	    (lstat(home->dir, &st) == 0 &&
		(st.st_uid == 0 || st.st_uid == geteuid()));
}

static void
home_read(const struct path_home *home, struct names *names)
{
	DIR *dir = is_trusted(home) ? opendir(home->dir) : NULL;
	const struct dirent *entry;

	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL) {
		if (is_profile(home, entry->d_name))
			names_add(names, entry->d_name);
	}
	(void)closedir(dir);
}

/* Returns -1. */
static int
refuse_none(const struct path_homes *homes, struct error *e)
{
	struct buffer b = {0};
	size_t i;

	for (i = 0; i < homes->count; i++)
		buffer_printf(&b, "%s%s", i == 0 ? "" : ", ",
		    log_safe(homes->list[i].dir));
	(void)error_set(e, "no profile in %s; name one: -P PROFILE", b.bytes);
	buffer_free(&b);
	return -1;
}

/* Returns -1. */
static int
refuse_many(const struct names *names, struct error *e)
{
	struct buffer b = {0};
	size_t i;

	qsort(names->list, names->count, sizeof(*names->list), names_order);
	for (i = 0; i < names->count; i++)
		buffer_printf(&b, "%s%s", i == 0 ? "" : ", ", names->list[i]);
	(void)error_set(e,
	    "%zu profiles are here, name one with -P PROFILE: %s", names->count,
	    b.bytes);
	buffer_free(&b);
	return -1;
}

int
profile_find(char **out, struct error *e)
{
	struct names names = {NULL, 0};
	struct path_homes homes;
	int rc, code = EXIT_CONFIG;
	size_t i;

	rc = path_homes(&homes, e);
	for (i = 0; rc == 0 && i < homes.count; i++)
		home_read(&homes.list[i], &names);
	if (rc == 0 && names.count != 1) {
		code = EXIT_USAGE;
		rc = names.count == 0 ? refuse_none(&homes, e)
				      : refuse_many(&names, e);
	}
	if (rc == 0)
		*out = xstrdup(names.list[0]);
	else
		e->code = code;
	names_free(&names);
	path_homes_free(&homes);
	return rc;
}
