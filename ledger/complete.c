/*
 * COMPLETE_DISPATCH: the outcome a worker reports. It is kept whatever became
 * of the record since, and stands from then on (ledger.md 6.3).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/url.h"
#include "ledger/handlers.h"
#include "ledger/record.h"
#include "ledger/worker.h"

#define LINKS_MAX 20
#define LINK_BYTES_MAX 2048

static const struct json_rules links_rules = {
    .max_bytes = 524288,
    .max_depth = 2,
    .max_members = 4096,
};

/* Each is judged where it stands; what is kept is what was given. */
static int
links_check(json_t *links, struct error *e)
{
	size_t i;
	json_t *link;

	if (!json_is_array(links))
		return error_set(e, "links is not an array of strings");
	if (json_array_size(links) > LINKS_MAX)
		return error_set(e, "at most %d links", LINKS_MAX);
	json_array_foreach (links, i, link) {
		if (!json_is_string(link))
			return error_set(e, "links is not an array of strings");
		if (json_string_length(link) > LINK_BYTES_MAX)
			return error_set(e, "link %zu is over %d bytes", i + 1,
			    LINK_BYTES_MAX);
		if (!url_is_link(
			json_string_value(link), json_string_length(link)))
			return error_set(
			    e, "link %zu is not an http or https URL", i + 1);
	}
	return 0;
}

/*
 * The links in the one spelling they are kept in, so that two reports compare
 * by content and order; no links at all is an empty array. NULL with E.
 */
static char *
links_read(struct blob given, struct error *e)
{
	json_t *links;
	char *text = NULL;

	links = given.len == 0
	    ? json_array()
	    : json_read(given.bytes, given.len, &links_rules, e);
	if (links == NULL) {
		(void)error_set(e, "links is not an array of strings");
		return NULL;
	}
	if (links_check(links, e) == 0)
		text = json_dumps(links, JSON_COMPACT);
	json_decref(links);
	return text;
}

static bool
opt_equal(struct opt a, struct opt b)
{
	return a.has == b.has && a.value == b.value;
}

/* The row first, by which its trigger asks for the pull; then the record. */
static int
complete_write(struct ledger *l, int64_t task_id,
    const struct msg_complete_dispatch *m, const char *links,
    const struct worker_row *r)
{
	const struct move move = {.event_id = m->event_id,
	    .to = RECORD_COMPLETED,
	    .from = RECORD_SET(RECORD_DISPATCHED)};

	if (sql_run(l, STMT_COMPLETE,
		WITH(v_int(task_id), v_int(m->event_id), v_text(l->now),
		    v_text(m->outcome), v_text(links), v_opt(m->reply_id))) ==
	    -1)
		return -1;
	if (strcmp(r->record_state, "dispatched") == 0 &&
	    record_move(l, &move) == MOVE_ERROR)
		return -1;
	return 0;
}

static int
complete_checked(struct ledger *l, struct answer *a, int64_t task_id,
    const struct msg_complete_dispatch *m, const char *links,
    const struct worker_row *r)
{
	if (strcmp(r->delivery, "completed") != 0)
		return complete_write(l, task_id, m, links, r);
	if (strcmp(r->outcome, m->outcome) != 0 ||
	    strcmp(r->links, links) != 0 ||
	    !opt_equal(r->reply_id, m->reply_id))
		return answer_fail(a, "report_conflict",
		    "another report of event %" PRId64 " stands", m->event_id);
	return 0;
}

int
handle_complete_dispatch(
    struct ledger *l, const struct request *q, struct answer *a)
{
	const struct msg_complete_dispatch *m = &q->m->complete_dispatch;
	struct worker_row r;
	struct error e;
	int64_t task_id;
	char *links;
	int rc;

	rc = worker_pulled(l, q, a, m->token, m->event_id, &task_id, &r);
	if (rc != 1)
		return rc;
	if (strcmp(m->outcome, "succeeded") != 0 &&
	    strcmp(m->outcome, "failed") != 0)
		return answer_fail(
		    a, "invalid_report", "outcome is succeeded or failed");
	if ((links = links_read(m->links, &e)) == NULL)
		return answer_fail(a, "invalid_report", "%s", e.text);
	rc = complete_checked(l, a, task_id, m, links, &r);
	if (rc == 0 && !answer_failed(a))
		rc = worker_report(l, a, task_id, m->event_id);
	free(links);
	return rc;
}
