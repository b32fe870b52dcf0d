#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/accounts.h"

#define SYSUSERS_FILE "sysusers.d/connectd.conf"
#define GROUPS_FIRST 32

static const char *const role_users[] = {
    [ROLE_SUPERVISOR] = NULL,
    [ROLE_LEDGER] = "_connectd-ledger",
    [ROLE_DISPATCHER] = "_connectd-disp",
    [ROLE_OUTBOX] = "_connectd-outbox",
    [ROLE_INTAKE] = "_connectd-intake",
    [ROLE_MCPD] = "_connectd-mcp",
};
static_assert(sizeof(role_users) / sizeof(role_users[0]) == ROLE_COUNT,
    "a user for every role");

/* getpwnam() leaves errno alone when there simply is no such user. */
static const struct passwd *
user_find(const char *name, const char *hint, struct error *e)
{
	const struct passwd *pw;

	errno = 0;
	pw = getpwnam(name);
	if (pw == NULL && errno != 0 && errno != ENOENT)
		(void)error_errno(e, "user %s", log_safe(name));
	else if (pw == NULL)
		(void)error_set(
		    e, "there is no user %s: %s", log_safe(name), hint);
	return pw;
}

static int
role_users_find(struct supervisor *sv, struct error *e)
{
	const struct passwd *pw;
	int role;

	for (role = ROLE_SUPERVISOR + 1; role < ROLE_COUNT; role++) {
		pw = user_find(role_users[role],
		    "make the users that " SYSUSERS_FILE " lists "
		    "(systemd-sysusers does it)",
		    e);
		if (pw == NULL)
			return -1;
		if (pw->pw_uid == 0)
			return error_set(
			    e, "the user %s is root", role_users[role]);
		sv->role_ids[role].uid = pw->pw_uid;
		sv->role_ids[role].gid = pw->pw_gid;
	}
	return 0;
}

static void
account_take(struct account *a, const struct passwd *pw)
{
	int room = GROUPS_FIRST;

	a->uid = pw->pw_uid;
	a->gid = pw->pw_gid;
	a->name = xstrdup(pw->pw_name);
	a->home = xstrdup(pw->pw_dir);
	a->shell = xstrdup(pw->pw_shell);
	do {
		a->group_count = room;
		a->groups =
		    xreallocarray(a->groups, (size_t)room, sizeof(*a->groups));
		room *= 2;
	} while (getgrouplist(pw->pw_name, pw->pw_gid, a->groups,
		     &a->group_count) == -1 &&
	    room <= 65536);
}

/* settings.c has seen that it is named, is there, and is not root. */
static int
worker_user_find(struct supervisor *sv, struct error *e)
{
	const char *name = sv->settings->worker.user;
	const struct passwd *pw;
	int role;

	pw = user_find(name, "connect.json names it as worker.user", e);
	if (pw == NULL)
		return -1;
	for (role = ROLE_SUPERVISOR + 1; role < ROLE_COUNT; role++) {
		if (sv->role_ids[role].uid == pw->pw_uid)
			return error_set(e,
			    "worker.user: %s is the user of "
			    "connectd's own %s",
			    log_safe(name), role_name((enum role_id)role));
	}
	account_take(&sv->worker_account, pw);
	return 0;
}

static int
own_account_find(struct supervisor *sv, struct error *e)
{
	const struct passwd *pw;
	int role;

	errno = 0;
	pw = getpwuid(geteuid());
	if (pw == NULL)
		return error_set(
		    e, "the uid %ld has no passwd entry", (long)geteuid());
	account_take(&sv->worker_account, pw);
	sv->worker_account.gid = getegid();
	for (role = ROLE_SUPERVISOR; role < ROLE_COUNT; role++) {
		sv->role_ids[role].uid = geteuid();
		sv->role_ids[role].gid = getegid();
	}
	return 0;
}

int
accounts_resolve(struct supervisor *sv, struct error *e)
{
	if (!sv->is_root)
		return own_account_find(sv, e);
	if (role_users_find(sv, e) == -1)
		return -1;
	return worker_user_find(sv, e);
}

int
accounts_control_group(const struct supervisor *sv, gid_t *gid, struct error *e)
{
	const struct group *gr;

	if (!sv->is_root) {
		*gid = getegid();
		return 0;
	}
	gr = getgrnam(CONTROL_GROUP);
	if (gr == NULL)
		return error_set(e,
		    "there is no group %s: make what " SYSUSERS_FILE
		    " lists (systemd-sysusers does it)",
		    CONTROL_GROUP);
	*gid = gr->gr_gid;
	return 0;
}
