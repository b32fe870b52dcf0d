#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/paths.h"
#include "common/xmalloc.h"

#define PROFILE_MAX 64
#define CONTROL_SOCKET "control.sock"

/* ---- text ------------------------------------------------------------- */

bool
path_profile_ok(const char *profile)
{
	static const char allowed[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	    "0123456789-_";
	size_t len = strlen(profile);

	return len > 0 && len <= PROFILE_MAX && strspn(profile, allowed) == len;
}

char *
path_clean(const char *dir)
{
	char here[PATH_MAX], *all, *out, *at, *next, *end;

	if (dir[0] == '/')
		all = xstrdup(dir);
	else if (getcwd(here, sizeof(here)) != NULL)
		(void)xasprintf(&all, "%s/%s", here, dir);
	else
		return NULL;
	out = end = xmalloc(strlen(all) + 2);
	for (at = strtok_r(all, "/", &next); at != NULL;
	     at = strtok_r(NULL, "/", &next)) {
		if (strcmp(at, ".") == 0)
			continue;
		if (strcmp(at, "..") == 0) {
			while (end > out && *--end != '/')
				;
			continue;
		}
		*end++ = '/';
		end = stpcpy(end, at);
	}
	if (end == out)
		*end++ = '/';
	*end = '\0';
	free(all);
	return out;
}

bool
path_is_clean(const char *path)
{
	const char *at = path;
	size_t len;

	if (path[0] != '/')
		return false;
	if (path[1] == '\0')
		return true;
	while (*at != '\0') {
		len = strcspn(++at, "/");
		if (len == 0 || (len == 1 && at[0] == '.') ||
		    (len == 2 && at[0] == '.' && at[1] == '.'))
			return false;
		at += len;
	}
	return true;
}

bool
path_contains(const char *dir, const char *path)
{
	size_t len = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return path[0] == '/';
	return strncmp(dir, path, len) == 0 &&
	    (path[len] == '\0' || path[len] == '/');
}

/* ---- where things are -------------------------------------------------- */

/*
 * One place: the variables in order, each with what is appended to it, then
 * what stands in for them.
 */
struct place {
	const char *names[2];
	const char *below[2];
	const char *for_root;
	const char *below_home; /* for a person; or */
	const char *with_uid;   /* this followed by -UID */
};

static const struct place config_place = {{"XDG_CONFIG_HOME", NULL},
    {"/connectd", NULL}, "/etc/connectd", "/.config/connectd", NULL};
static const struct place state_place = {{"STATE_DIRECTORY", "XDG_STATE_HOME"},
    {"", "/basecamp/connect"}, "/var/lib/connectd",
    "/.local/state/basecamp/connect", NULL};
static const struct place runtime_place = {
    {"RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"}, {"", "/connectd"},
    "/run/connectd", NULL, "/tmp/connectd"};
static const struct place cache_place = {
    {"CACHE_DIRECTORY", NULL}, {"", NULL}, "/var/tmp", NULL, NULL};

/* The clean value of a variable; NULL when it is not set. -1: it is no good. */
static int
variable_read(const char *name, char **out, struct error *e)
{
	const char *value = getenv(name);

	*out = NULL;
	if (value == NULL || value[0] == '\0')
		return 0;
	if (value[0] != '/')
		return error_set(
		    e, "%s is no absolute path: %s", name, log_safe(value));
	/* The service manager separates several by a colon. */
	if (strchr(value, ':') != NULL)
		return error_set(e, "%s names more than one directory: %s",
		    name, log_safe(value));
	*out = path_clean(value);
	return 0;
}

/* "/x" below "/" is "/x". */
static char *
path_join(const char *dir, const char *below)
{
	char *out;

	(void)xasprintf(&out, "%s%s",
	    strcmp(dir, "/") == 0 && below[0] == '/' ? "" : dir, below);
	return out;
}

/* What DIR, clean, lies in. */
static char *
path_parent(const char *dir)
{
	const char *slash = strrchr(dir, '/');

	return slash == dir ? xstrdup("/")
			    : xstrndup(dir, (size_t)(slash - dir));
}

static int
place_default(
    const struct place *place, char **out, char **given, struct error *e)
{
	if (geteuid() != 0 && place->below_home != NULL) {
		if (variable_read("HOME", given, e) == -1)
			return -1;
		if (*given == NULL)
			return error_set(e, "HOME is not set");
		*out = path_join(*given, place->below_home);
		return 0;
	}
	if (geteuid() != 0 && place->with_uid != NULL)
		(void)xasprintf(
		    out, "%s-%u", place->with_uid, (unsigned int)geteuid());
	else
		*out = xstrdup(place->for_root);
	*given = path_parent(*out);
	return 0;
}

/* *GIVEN, the caller's too, is the part of it that is not ours to make. */
static int
place_find(const struct place *place, char **out, char **given, struct error *e)
{
	char *dir;
	size_t i;

	for (i = 0; i < 2 && place->names[i] != NULL; i++) {
		if (variable_read(place->names[i], &dir, e) == -1)
			return -1;
		if (dir == NULL)
			continue;
		*out = path_join(dir, place->below[i]);
		*given = place->below[i][0] == '\0' ? path_parent(dir)
						    : xstrdup(dir);
		free(dir);
		return 0;
	}
	return place_default(place, out, given, e);
}

/* The same, with "/PROFILE" behind it. */
static int
place_find_profile(const struct place *place, const char *profile, char **out,
    char **given, struct error *e)
{
	char *dir;

	if (place_find(place, &dir, given, e) == -1)
		return -1;
	(void)xasprintf(
	    out, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, profile);
	free(dir);
	return 0;
}

/* Which variable a run-time directory came from, for a text. */
static const char *
runtime_variable(void)
{
	const char *first = getenv(runtime_place.names[0]);

	return first != NULL && first[0] != '\0' ? runtime_place.names[0]
						 : runtime_place.names[1];
}

int
path_resolve(const char *profile, struct paths *out, struct error *e)
{
	char *not_ours = NULL; /* those two are not for us to make */
	int rc;

	memset(out, 0, sizeof(*out));
	if (!path_profile_ok(profile))
		return error_set(e,
		    "a profile's name is 1 to %d letters, digits, '-' and '_'",
		    PROFILE_MAX);
	rc = place_find_profile(
	    &config_place, profile, &out->config_dir, &not_ours, e);
	free(not_ours);
	if (rc == -1 ||
	    place_find(&state_place, &out->state_root, &out->state_given, e) ==
		-1 ||
	    place_find_profile(&runtime_place, profile, &out->runtime_dir,
		&out->runtime_given, e) == -1)
		return -1;
	not_ours = NULL;
	rc = place_find(&cache_place, &out->cache_dir, &not_ours, e);
	free(not_ours);
	if (rc == -1)
		return -1;
	out->control_socket = path_join(out->runtime_dir, "/" CONTROL_SOCKET);
	out->ledger_socket =
	    path_join(out->runtime_dir, "/" PATH_LEDGER_SOCKET);
	if (strlen(out->control_socket) > SOCKET_PATH_MAX)
		return error_set(e,
		    "the control socket's path is longer than %d bytes; set "
		    "%s to a shorter directory",
		    SOCKET_PATH_MAX, runtime_variable());
	return 0;
}

void
path_free(struct paths *p)
{
	free(p->config_dir);
	free(p->state_root);
	free(p->runtime_dir);
	free(p->control_socket);
	free(p->ledger_socket);
	free(p->cache_dir);
	free(p->state_given);
	free(p->runtime_given);
	memset(p, 0, sizeof(*p));
}

/* ---- the homes of profiles ---------------------------------------------- */

static const struct {
	const struct place *place;
	const char *file;
} profile_places[] = {
    {&config_place, "connect.json"},
    {&runtime_place, CONTROL_SOCKET},
};

#define PROFILE_PLACES (sizeof(profile_places) / sizeof(profile_places[0]))

/* DIR is taken over; it may be there already. */
static void
home_add(struct path_homes *h, char *dir, const char *file, bool is_system)
{
	size_t i;

	for (i = 0; i < h->count; i++) {
		if (strcmp(h->list[i].dir, dir) == 0) {
			h->list[i].is_system |= is_system;
			free(dir);
			return;
		}
	}
	h->list[h->count++] = (struct path_home){dir, file, is_system};
}

int
path_homes(struct path_homes *out, struct error *e)
{
	char *dir = NULL, *given = NULL;
	size_t i;
	int rc;

	*out = (struct path_homes){.count = 0};
	for (i = 0; i < PROFILE_PLACES; i++) {
		rc = place_find(profile_places[i].place, &dir, &given, e);
		free(given);
		given = NULL;
		if (rc == -1)
			return -1;
		home_add(out, dir, profile_places[i].file, false);
	}
	for (i = 0; i < PROFILE_PLACES; i++)
		home_add(out, xstrdup(profile_places[i].place->for_root),
		    profile_places[i].file, true);
	return 0;
}

void
path_homes_free(struct path_homes *h)
{
	while (h->count > 0)
		free(h->list[--h->count].dir);
}

char *
path_system_socket(const char *profile)
{
	char *out;

	(void)xasprintf(
	    &out, "%s/%s/" CONTROL_SOCKET, runtime_place.for_root, profile);
	return out;
}

/* ---- the state directory ------------------------------------------------ */

char *
path_state_dir(const char *root, int64_t account, int64_t agent)
{
	char *out;

	(void)xasprintf(
	    &out, "%s/%lld-%lld", root, (long long)account, (long long)agent);
	return out;
}

/* Decimal digits only, at most 20 of them; 0 is no id. */
static int
id_parse(const char *text, size_t len, uint64_t *out)
{
	char digits[24], *end;

	if (len == 0 || len > 20 || strspn(text, "0123456789") < len)
		return -1;
	memcpy(digits, text, len);
	digits[len] = '\0';
	errno = 0;
	*out = strtoull(digits, &end, 10);
	return errno != 0 || *out == 0 ? -1 : 0;
}

/* "999-52007412"; the account may be padded, the agent is spelled one way. */
static int
state_name_parse(const char *name, uint64_t *account, int64_t *agent)
{
	const char *dash = strchr(name, '-');
	uint64_t number;

	if (dash == NULL || dash[1] == '0' ||
	    id_parse(name, (size_t)(dash - name), account) == -1 ||
	    id_parse(dash + 1, strlen(dash + 1), &number) == -1 ||
	    number > INT64_MAX)
		return -1;
	*agent = (int64_t)number;
	return 0;
}

int
path_state_check(const char *root, const char *dir, int64_t account,
    int64_t *agent, struct error *e)
{
	char *clean = path_clean(dir), *clean_root = path_clean(root), *name;
	uint64_t found = 0;
	int rc = -1;

	if (clean == NULL || clean_root == NULL) {
		rc = error_errno(e, "%s", dir);
		goto out;
	}
	name = strrchr(clean, '/');
	*name++ = '\0';
	if (strcmp(clean[0] == '\0' ? "/" : clean, clean_root) != 0)
		rc = error_set(
		    e, "%s lies elsewhere than in %s", dir, clean_root);
	else if (state_name_parse(name, &found, agent) == -1)
		rc = error_set(e,
		    "%s is misnamed: a state directory is "
		    "called ACCOUNT-AGENT, with both ids",
		    dir);
	else if (found != (uint64_t)account)
		rc = error_set(e,
		    "%s is of the other account %llu, not of "
		    "%lld",
		    dir, (unsigned long long)found, (long long)account);
	else
		rc = 0;
out:
	free(clean);
	free(clean_root);
	return rc;
}
