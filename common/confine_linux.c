/*
 * The worker's confinement (design 2.1). Apart from the roles' walls, since it
 * is the supervisor that puts it up, which has no system-call filter to link.
 */
#include "common/landlock.h"
#include "common/sandbox.h"

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
	    landlock_allow_resolver(l, e) == -1 ||
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

	if (landlock_abi() < LANDLOCK_ABI_LEAST)
		return error_set(e,
		    "Landlock: ABI %d is needed, the kernel "
		    "has %d",
		    LANDLOCK_ABI_LEAST, landlock_abi());
	if (landlock_prepare(&l, LANDLOCK_CLOSES_SIGNALS, e) == -1)
		return -1;
	if (worker_rules(&l, read_dirs, write_dirs, e) == -1 ||
	    landlock_enter(&l, e) == -1) {
		landlock_drop(&l);
		return -1;
	}
	return 0;
}
