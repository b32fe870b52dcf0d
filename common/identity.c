#include <errno.h>
#include <string.h>

#include "common/identity.h"

int
identity_read(pid_t pid, struct identity *out, struct error *e)
{
	memset(out, 0, sizeof(*out));
	if (pid <= 0)
		errno = ESRCH;
	if (pid <= 0 || identity_look(pid, out) == -1)
		return error_errno(e, "process %d", (int)pid);
	out->pid = pid;
	return identity_boot_id(out->boot_id, e);
}

enum identity_is
identity_check(const struct identity *recorded)
{
	char boot_id[BOOT_ID_LEN + 1];
	struct identity now;
	struct error e;

	if (recorded->pid <= 0)
		return IDENTITY_GONE;
	if (identity_boot_id(boot_id, &e) == -1)
		return IDENTITY_UNKNOWN;
	if (recorded->boot_id[0] != '\0' &&
	    strcmp(recorded->boot_id, boot_id) != 0)
		return IDENTITY_GONE;
	if (identity_look(recorded->pid, &now) == -1)
		return errno == ESRCH ? IDENTITY_GONE : IDENTITY_UNKNOWN;
	if (recorded->boot_id[0] == '\0' || recorded->started_ticks <= 0)
		return IDENTITY_UNKNOWN;
	return now.started_ticks == recorded->started_ticks ? IDENTITY_SAME
							    : IDENTITY_GONE;
}
