#include <stdio.h>
#include <string.h>

#include "common/identity.h"
#include "connectctl/workers.h"

static int64_t
number_of(const json_t *task, const char *name)
{
	return json_integer_value(json_object_get(task, name));
}

/* False: what was recorded names no process. */
static bool
identity_of(const json_t *task, struct identity *out)
{
	const char *boot = json_string_value(json_object_get(task, "boot_id"));

	*out = (struct identity){.pid = (pid_t)number_of(task, "pid"),
	    .pgid = (pid_t)number_of(task, "pgid"),
	    .started_ticks = number_of(task, "started_ticks")};
	(void)snprintf(
	    out->boot_id, sizeof(out->boot_id), "%s", boot == NULL ? "" : boot);
	return out->pid > 0 && out->pgid > 1 && out->started_ticks > 0 &&
	    boot != NULL;
}

/* A group's number means nothing after another boot. */
static const char *
group_is(const struct identity *leader)
{
	char boot[BOOT_ID_LEN + 1];
	struct error e;
	int members;

	if (identity_boot_id(boot, &e) == -1)
		return "unverified";
	if (strcmp(boot, leader->boot_id) != 0)
		return "gone";
	members = identity_group_members(leader->pgid);
	return members == -1 ? "unverified" : members == 0 ? "gone" : "held";
}

static const char *
worker_is(const json_t *task)
{
	struct identity leader;

	if (!identity_of(task, &leader))
		return "not_recorded";
	switch (identity_check(&leader)) {
	case IDENTITY_SAME:
		return "running";
	case IDENTITY_GONE:
		return group_is(&leader);
	case IDENTITY_UNKNOWN:
		break;
	}
	return "unverified";
}

void
workers_tell(json_t *status)
{
	json_t *task;
	size_t i;

	json_array_foreach (json_object_get(status, "live_tasks"), i, task)
		(void)json_object_set_new(
		    task, "worker", json_string(worker_is(task)));
}
