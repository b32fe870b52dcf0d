/* What retraction_scene.h says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/retraction_scene.h"

static int64_t receipts;

/* Guards are of no interest here. */
void
no_guards(struct fixture *f)
{
	sql_ok(f,
	    "UPDATE outbox SET state = 'canceled' WHERE kind = 'guard_ack'"
	    " AND state = 'pending'");
}

const char *
next_nonce(void)
{
	static char out[33];
	static unsigned int n;

	(void)snprintf(out, sizeof(out), "%032x", 0x9000 + n++);
	return out;
}

/* Claim what is due; its kind, or "". */
const char *
claim_one(struct fixture *f)
{
	const struct msg *c = claim(f, next_nonce());

	return c->claimed.found ? c->claimed.kind : "";
}

/* What is being sent has arrived. */
void
receive_one(struct fixture *f)
{
	struct msg m = {.type = MSG_RECEIPT};

	m.receipt.intent_id =
	    sql_int(f, "SELECT id FROM outbox WHERE state = 'sending'");
	m.receipt.nonce =
	    sql_get(f, "SELECT nonce FROM outbox WHERE state = 'sending'");
	m.receipt.receipt_id = 9000 + receipts++;
	(void)fixture_get(f, &m, ROLE_OUTBOX, "", MSG_SETTLED);
}

void
post_one(struct fixture *f, const char *kind)
{
	assert_string_equal(kind, claim_one(f));
	receive_one(f);
}

void
end_unknown(struct fixture *f, int64_t id, const char *attempt)
{
	if (*state_of(f, id) == '\0') {
		(void)record_event(f, id);
		(void)admit_event(f, id, "k");
	}
	assert_string_not_equal("", launch(f, id, attempt));
	(void)end_attempt(f, attempt, "lost");
	no_guards(f);
}

void
block_no_route(struct fixture *f)
{
	(void)record_event(f, 101);
	(void)refuse_event(f, 101, "blocked", "no_route");
}

int64_t
retraction_count(struct fixture *f, const char *state)
{
	return sql_int(f,
	    "SELECT COUNT(*) FROM outbox WHERE kind = 'retraction'"
	    " AND state LIKE '%s'",
	    state);
}

const char *
retraction_body(struct fixture *f)
{
	return sql_get(f,
	    "SELECT body FROM outbox WHERE kind = 'retraction'"
	    " ORDER BY id DESC");
}

bool
outbox_was_told(struct fixture *f)
{
	size_t i;

	for (i = 0; i < f->notice_count; i++) {
		if (f->notices[i].type == MSG_POST_WAITS)
			return true;
	}
	return false;
}
