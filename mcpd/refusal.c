#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "mcpd/refusal.h"

/*
 * What each kind means to a worker. The peer's own text stands where it says
 * more than the kind, and never for a fault of ours.
 */
static const struct row {
	const char *reason; /* of FAILED */
	const char *kind;
	bool has_own_text;
	const char *text;
} rows[] = {
    {"task_token_refused", "task_token_refused", false,
	"This task is not current any more. Stop working on it."},
    {"not_on_task", "not_on_task", true, "That event is not on this task."},
    {"not_exposed", "not_exposed", true,
	"That event was not handed to you. Call get_dispatch first."},
    {"report_conflict", "report_conflict", true,
	"A different report already stands for that event."},
    {"not_dispatchable", "not_dispatchable", true,
	"That event can no longer be dispatched."},
    {"invalid_report", "invalid_report", true, "The report is not valid."},
    {"held", "held", false,
	"The connector is on hold: nothing new is handed over until an "
	"operator releases it."},
    {"cancelled", "cancelled", false, "The call was cancelled."},
    {"unusable", "invalid_params", true, "That cannot be read."},
    {"not_found", "not_found", true, "It is gone, or the agent cannot see it."},
    {"throttled", "throttled", false,
	"Basecamp asks for a pause. Try again in a while."},
};

static const struct row generic = {"", "unavailable", false,
    "The connector could not answer. Try again; report it if it persists."};

json_t *
refusal_json(const char *kind, const char *text)
{
	return json_pack("{s:s, s:s}", "error", kind, "message", text);
}

json_t *
refusal_of(const struct msg_failed *failed)
{
	const struct row *row = &generic;
	json_t *json;
	char *text;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].reason, failed->reason) == 0)
			row = &rows[i];
	}
	if (!row->has_own_text || failed->text[0] == '\0')
		return refusal_json(row->kind, row->text);
	text = text_make_utf8(failed->text, strlen(failed->text), NULL);
	json = refusal_json(row->kind, text);
	free(text);
	return json;
}
