#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/landlock.h"

/* What the kernel's header may be too old to name. */
#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif
#ifndef LANDLOCK_ACCESS_NET_BIND_TCP
#define LANDLOCK_ACCESS_NET_BIND_TCP (1ULL << 0)
#define LANDLOCK_ACCESS_NET_CONNECT_TCP (1ULL << 1)
#endif
#ifndef LANDLOCK_SCOPE_SIGNAL
#define LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define LANDLOCK_SCOPE_SIGNAL (1ULL << 1)
#endif

#define FS_ABI_1 (LANDLOCK_ACCESS_FS_REFER - 1) /* the first thirteen */

/* The kernel's struct landlock_ruleset_attr; an older one ends earlier. */
struct ruleset {
	uint64_t fs, net, scoped;
};

#define FS_FILE_RIGHTS                                                   \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |    \
	    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_TRUNCATE | \
	    LANDLOCK_ACCESS_FS_IOCTL_DEV)

/* Devices are not made by anyone who writes here. */
#define FS_WRITE_RIGHTS                                                    \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |     \
	    LANDLOCK_ACCESS_FS_REFER | LANDLOCK_ACCESS_FS_REMOVE_DIR |     \
	    LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | \
	    LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |   \
	    LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM)

/* Since which ABI a right exists; those of the first are not listed. */
static const struct {
	int abi;
	uint64_t fs;
	const char *name;
} later[] = {
    {2, LANDLOCK_ACCESS_FS_REFER, "refer"},
    {3, LANDLOCK_ACCESS_FS_TRUNCATE, "truncate"},
    {4, 0, "tcp"},
    {5, LANDLOCK_ACCESS_FS_IOCTL_DEV, "ioctl"},
    {6, 0, "scope"},
};
#define LATER (sizeof(later) / sizeof(later[0]))
#define ABI_NET 4
#define ABI_SCOPE 6

int
landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
	    LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

void
landlock_lacks(int abi, char *out, size_t size)
{
	size_t i, used = 0;
	int n;

	out[0] = '\0';
	for (i = 0; i < LATER && used < size; i++) {
		if (later[i].abi <= abi)
			continue;
		n = snprintf(out + used, size - used, "%s%s(%d)",
		    used == 0 ? "" : " ", later[i].name, later[i].abi);
		used += n > 0 ? (size_t)n : 0;
	}
}

static uint64_t
fs_known(int abi)
{
	uint64_t rights = FS_ABI_1;
	size_t i;

	for (i = 0; i < LATER; i++) {
		if (later[i].abi <= abi)
			rights |= later[i].fs;
	}
	return rights;
}

int
landlock_prepare(struct landlock *l, unsigned int closes, struct error *e)
{
	struct ruleset set = {0, 0, 0};

	l->abi = landlock_abi();
	l->fd = -1;
	set.fs = fs_known(l->abi);
	if (l->abi >= ABI_NET && (closes & LANDLOCK_CLOSES_BIND) != 0)
		set.net |= LANDLOCK_ACCESS_NET_BIND_TCP;
	if (l->abi >= ABI_NET && (closes & LANDLOCK_CLOSES_CONNECT) != 0)
		set.net |= LANDLOCK_ACCESS_NET_CONNECT_TCP;
	if (l->abi >= ABI_SCOPE && (closes & LANDLOCK_CLOSES_SIGNALS) != 0)
		set.scoped |= LANDLOCK_SCOPE_SIGNAL;
	if (l->abi >= ABI_SCOPE && (closes & LANDLOCK_CLOSES_ABSTRACT) != 0)
		set.scoped |= LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET;
	/* Members an older kernel does not know are zero, which it accepts. */
	l->fd = (int)syscall(SYS_landlock_create_ruleset, &set, sizeof(set), 0);
	if (l->fd == -1)
		return error_errno(e, "Landlock");
	return 0;
}

static uint64_t
rights_of(unsigned int gives)
{
	uint64_t rights = 0;

	if ((gives & LANDLOCK_GIVES_READ) != 0)
		rights |=
		    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
	if ((gives & LANDLOCK_GIVES_WRITE) != 0)
		rights |= FS_WRITE_RIGHTS;
	if ((gives & LANDLOCK_GIVES_EXECUTE) != 0)
		rights |= LANDLOCK_ACCESS_FS_EXECUTE;
	if ((gives & LANDLOCK_GIVES_IOCTL) != 0)
		rights |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
	return rights;
}

int
landlock_allow(const struct landlock *l, const char *path, unsigned int gives,
    bool may_miss, struct error *e)
{
	struct landlock_path_beneath_attr rule = {
	    .allowed_access = rights_of(gives) & fs_known(l->abi)};
	struct stat st;
	long rc;

	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd == -1) {
		if (may_miss && (errno == ENOENT || errno == ENOTDIR))
			return 0;
		return error_errno(e, "Landlock: %s", path);
	}
	if (fstat(rule.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
		rule.allowed_access &= FS_FILE_RIGHTS;
	rc = syscall(
	    SYS_landlock_add_rule, l->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	if (rc == -1)
		(void)error_errno(e, "Landlock: %s", path);
	(void)close(rule.parent_fd);
	return rc == -1 ? -1 : 0;
}

int
landlock_allow_resolver(const struct landlock *l, struct error *e)
{
	static const char *const dirs[] = {
	    "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"};
	size_t i;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		if (landlock_allow(l, dirs[i], LANDLOCK_GIVES_READ, true, e) ==
		    -1)
			return -1;
	}
	return 0;
}

int
landlock_enter(struct landlock *l, struct error *e)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return error_errno(e, "no_new_privs");
	if (syscall(SYS_landlock_restrict_self, l->fd, 0) == -1)
		return error_errno(e, "Landlock");
	landlock_drop(l);
	return 0;
}

void
landlock_drop(struct landlock *l)
{
	if (l->fd != -1)
		(void)close(l->fd);
	l->fd = -1;
}
