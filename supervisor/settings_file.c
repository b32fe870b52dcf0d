#include <sys/stat.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/settings.h"

/* The directory that PATH is in; PATH is absolute and clean. */
static char *
parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == path ? xstrdup("/")
			     : xstrndup(path, (size_t)(slash - path));
}

/* ---- privacy (admission.md 5.7) ----------------------------------------- */

/* A real directory of ours that nobody else can write. */
static int
directory_check(const char *path, uid_t owner, struct error *e)
{
	struct stat st;

	if (lstat(path, &st) == -1)
		return error_errno(e, "%s", log_safe(path));
	if (!S_ISDIR(st.st_mode))
		return error_set(e, "%s: not a directory", log_safe(path));
	if (st.st_uid != owner)
		return error_set(e, "%s: belongs to uid %u, not to %u",
		    log_safe(path), st.st_uid, owner);
	if ((st.st_mode & 022) != 0)
		return error_set(e, "%s: others may write to it (mode %04o)",
		    log_safe(path), st.st_mode & 07777);
	return 0;
}

/* PROFILE's directory, the one of all profiles, and what is above them. */
static int
config_dir_check(const char *dir, uid_t owner, struct error *e)
{
	char *all = parent_of(dir);
	int result = 0;

	if (directory_check(dir, owner, e) == -1 ||
	    directory_check(all, owner, e) == -1 ||
	    path_ancestors_check(all, owner, e) == -1)
		result = -1;
	free(all);
	return result;
}

struct settings *
settings_load(
    const struct paths *paths, const struct options *options, struct error *e)
{
	struct settings *s = NULL;
	uid_t owner = geteuid();
	char *file, *text;
	size_t len;

	if (config_dir_check(paths->config_dir, owner, e) == -1)
		return NULL;
	(void)xasprintf(&file, "%s/connect.json", paths->config_dir);
	if (path_read_private(file, owner, 022, DOCUMENT_MAX, &text, &len, e) ==
	    0) {
		s = settings_parse(file, text, len, paths, options, owner, e);
		free(text);
	}
	free(file);
	return s;
}

/* ---- connectd's own directories ----------------------------------------- */

static bool
touches(const char *a, const char *b)
{
	return path_contains(a, b) || path_contains(b, a);
}

/* As written, and with the links of what exists resolved. */
static bool
touches_resolved(const char *own, const char *path)
{
	char own_real[PATH_MAX], path_real[PATH_MAX];

	if (touches(own, path))
		return true;
	if (realpath(own, own_real) == NULL)
		(void)snprintf(own_real, sizeof(own_real), "%s", own);
	if (realpath(path, path_real) == NULL)
		(void)snprintf(path_real, sizeof(path_real), "%s", path);
	return touches(own_real, path_real);
}

/* All profiles' files: another's credentials are no more the worker's. */
const char *
settings_own_directory(const struct paths *paths, const char *path)
{
	char *configs = parent_of(paths->config_dir);
	char *runs = parent_of(paths->runtime_dir);
	const char *found = NULL;

	if (touches_resolved(configs, path))
		found = paths->config_dir;
	else if (touches_resolved(paths->state_root, path))
		found = paths->state_root;
	else if (touches_resolved(runs, path))
		found = paths->runtime_dir;
	free(configs);
	free(runs);
	return found;
}

/* What a confined worker may always read (design 2.1). */
const char *
settings_readable_directory(const struct paths *paths)
{
	static const char *const open_dirs[] = {"/usr", "/bin", "/sbin", "/lib",
	    "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc", "/sys",
	    "/dev"};
	const char *const own[] = {
	    paths->config_dir, paths->state_root, paths->runtime_dir};
	size_t i, j;

	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		for (j = 0; j < sizeof(open_dirs) / sizeof(open_dirs[0]); j++) {
			if (path_contains(open_dirs[j], own[i]))
				return own[i];
		}
	}
	return NULL;
}
