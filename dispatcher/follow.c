/*
 * What comes to a conversation while its task runs (dispatch.md 3, step 3, and
 * 6): it joins the task, and when the turn has ended well the worker is told
 * of it, one prompt each, after the ledger knows that it may see it.
 */
#include "common/log.h"
#include "dispatcher/attempt.h"

static void
join_make(struct msg *m, const struct attempt *a)
{
	*m = (struct msg){.type = MSG_JOIN};
	m->join.attempt = a->id;
	m->join.generation = a->d->role.config->generation;
}

void
attempt_join(struct attempt *a)
{
	struct msg m;

	join_make(&m, a);
	attempt_ask(a, dispatcher_ledger(a->d), &m);
}

void
attempt_expose(struct attempt *a)
{
	struct msg m = {.type = MSG_EXPOSE};

	m.expose.attempt = a->id;
	m.expose.event_id = a->unexposed;
	attempt_ask(a, dispatcher_ledger(a->d), &m);
}

/* Whatever the answer was: the end of the turn asks again. */
static void
on_joined_beside(struct peer *peer, struct msg *m, void *arg)
{
	struct attempt *a = attempt_ref_take(arg);

	if (a == NULL)
		return;
	a->joining = false;
	if (a->join_again && a->state <= AT_TURN)
		attempt_join_beside(a);
}

void
attempt_join_beside(struct attempt *a)
{
	struct msg m;

	a->join_again = a->joining;
	if (a->joining)
		return;
	a->joining = true;
	join_make(&m, a);
	(void)peer_request(
	    dispatcher_ledger(a->d), &m, on_joined_beside, attempt_ref_new(a));
}

/* ---- what persons decide ------------------------------------------------- */

static void look_on(struct dispatcher *d, int64_t after);

/* What was decided behind it is seen by another one. */
static void
look_over(struct dispatcher *d)
{
	d->looking = false;
	if (d->look_again)
		decisions_look(d);
}

/* Held, and the ledger has it no more: it was settled. */
static void
look_end(struct dispatcher *d)
{
	struct attempt *a, *next;

	for (a = LIST_FIRST(&d->attempts); a != NULL; a = next) {
		next = LIST_NEXT(a, entry);
		if (a->state == AT_HELD && !a->is_listed)
			attempt_event(a, EV_OVER);
	}
	look_over(d);
}

static void
on_live(struct peer *peer, struct msg *m, void *arg)
{
	struct dispatcher *d = arg;
	struct attempt *a;

	if (m->type == MSG_FAILED) {
		look_over(d);
		return;
	}
	if (!m->live.found) {
		look_end(d);
		return;
	}
	a = attempt_find(d, m->live.attempt);
	if (a != NULL)
		a->is_listed = true;
	if (a != NULL && m->live.superseded)
		attempt_event(a, EV_SUPERSEDED);
	look_on(d, m->live.task_id);
}

static void
look_on(struct dispatcher *d, int64_t after)
{
	struct msg m = {.type = MSG_NEXT_LIVE};

	m.next_live.after_task = after;
	(void)peer_request(dispatcher_ledger(d), &m, on_live, d);
}

/* One that the ledger's death cut goes on by itself on the new link. */
void
decisions_look(struct dispatcher *d)
{
	struct attempt *a;

	d->look_again = d->looking;
	if (d->looking)
		return;
	d->looking = true;
	LIST_FOREACH (a, &d->attempts, entry)
		a->is_listed = false;
	look_on(d, 0);
}
