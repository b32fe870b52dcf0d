#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/requests.h"
#include "common/xmalloc.h"

#define RETRY_FIRST_MS 50
#define RETRY_MOST_MS 1000

/* A request from its first sending to its answer. */
struct pending {
	TAILQ_ENTRY(pending) entry;
	uint64_t id;
	enum msg_type type;
	struct frame frame;
	peer_answer answer; /* NULL: forgotten */
	void *arg;
	int64_t not_before; /* monotonic ms */
	int tries;          /* answered `unavailable` so often */
	int64_t record;     /* the event that it is to move; 0: none */
	bool is_suspect;    /* unanswered at a death: it goes alone */
};

void
requests_init(struct requests *r, enum role_id self, enum role_id role)
{
	*r = (struct requests){.self = self, .role = role, .next_id = 1};
	TAILQ_INIT(&r->sent);
	TAILQ_INIT(&r->waiting);
}

/* The record that it is to move, which makes the ledger read it; or 0. */
static int64_t
msg_record(const struct msg *m)
{
	if (m->type == MSG_VERDICT)
		return m->verdict.event_id;
	return m->type == MSG_LAUNCH ? m->launch.event_id : 0;
}

/* In no list yet. */
static struct pending *
pending_new(struct requests *r, struct msg *m, peer_answer answer, void *arg)
{
	struct pending *p = xcalloc(1, sizeof(*p));
	struct error e;

	if (!msg_is_request(m->type) ||
	    !msg_permitted(m->type, r->self, r->role))
		fatalx("%s: not ours to ask of %s", msg_name(m->type),
		    role_name(r->role));
	m->request = p->id = r->next_id++;
	p->type = m->type;
	p->answer = answer;
	p->arg = arg;
	p->record = msg_record(m);
	if (frame_encode(m, &p->frame, &e) == -1)
		fatalx("%s", e.text);
	return p;
}

static void
pending_free(struct pending *p)
{
	frame_free(&p->frame);
	free(p);
}

static void
pending_drop(struct pending_list *list)
{
	struct pending *p;

	while ((p = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, p, entry);
		pending_free(p);
	}
}

void
requests_drop(struct requests *r)
{
	pending_drop(&r->sent);
	pending_drop(&r->waiting);
}

/* First the death is counted, then what may have caused it is repeated. */
static void
suspect_sent(struct requests *r, const char *death)
{
	struct pending *first = TAILQ_FIRST(&r->sent), *p, *count;
	struct msg m = {.type = MSG_COUNT_DEATH};

	m.count_death.death = death;
	for (p = first; p != NULL; p = TAILQ_NEXT(p, entry)) {
		if (!p->is_suspect)
			r->suspects++;
		p->is_suspect = true;
		if (p->record == 0)
			continue;
		m.count_death.event_id = p->record;
		count = pending_new(r, &m, NULL, NULL);
		TAILQ_INSERT_BEFORE(first, count, entry);
		r->sent_count++;
	}
}

void
requests_repeat(struct requests *r, const char *death)
{
	if (death[0] != '\0')
		suspect_sent(r, death);
	TAILQ_CONCAT(&r->sent, &r->waiting, entry);
	TAILQ_CONCAT(&r->waiting, &r->sent, entry);
	r->waiting_count += r->sent_count;
	r->sent_count = 0;
}

static void
pending_send(struct requests *r, struct pending *p, struct link *link)
{
	struct frame copy;

	if (frame_dup(&p->frame, &copy) == -1)
		fatal("%s: cannot copy its descriptors", msg_name(p->type));
	TAILQ_REMOVE(&r->waiting, p, entry);
	r->waiting_count--;
	TAILQ_INSERT_TAIL(&r->sent, p, entry);
	r->sent_count++;
	link_send_frame(link, &copy);
}

static size_t
requests_window(const struct requests *r)
{
	return r->suspects > 0 ? 1 : PEER_WINDOW;
}

int64_t
requests_send(struct requests *r, struct link *link)
{
	struct pending *p, *next;
	int64_t now = clock_monotonic_ms(), soonest = INT64_MAX;

	for (p = TAILQ_FIRST(&r->waiting); p != NULL; p = next) {
		next = TAILQ_NEXT(p, entry);
		if (r->sent_count >= requests_window(r))
			return -1;
		if (p->not_before <= now)
			pending_send(r, p, link);
		else if (p->not_before < soonest)
			soonest = p->not_before;
	}
	return soonest == INT64_MAX ? -1 : soonest - now;
}

uint64_t
requests_add(struct requests *r, struct msg *m, peer_answer answer, void *arg)
{
	struct pending *p = pending_new(r, m, answer, arg);

	TAILQ_INSERT_TAIL(&r->waiting, p, entry);
	r->waiting_count++;
	return p->id;
}

static struct pending *
pending_find(struct pending_list *list, uint64_t id)
{
	struct pending *p;

	TAILQ_FOREACH (p, list, entry) {
		if (p->id == id)
			return p;
	}
	return NULL;
}

void
requests_forget(struct requests *r, uint64_t id)
{
	struct pending *p = pending_find(&r->sent, id);

	if (p == NULL)
		p = pending_find(&r->waiting, id);
	if (p != NULL)
		p->answer = NULL;
}

size_t
requests_count(const struct requests *r)
{
	return r->sent_count + r->waiting_count;
}

/* It stands; ask again after a pause that grows. */
static void
pending_postpone(struct requests *r, struct pending *p)
{
	int64_t pause = RETRY_FIRST_MS;
	int i;

	for (i = 0; i < p->tries && pause < RETRY_MOST_MS; i++)
		pause *= 2;
	p->tries++;
	p->not_before = clock_monotonic_ms() +
	    (pause > RETRY_MOST_MS ? RETRY_MOST_MS : pause);
	TAILQ_INSERT_HEAD(&r->waiting, p, entry);
	r->waiting_count++;
}

int
requests_answered(struct requests *r, const struct msg *reply,
    peer_answer *answer, void **arg)
{
	struct pending *p = pending_find(&r->sent, reply->request);
	bool is_failed = reply->type == MSG_FAILED;

	if (p == NULL ||
	    (!is_failed && msg_info(p->type)->reply != reply->type))
		return -1;
	*answer = NULL;
	TAILQ_REMOVE(&r->sent, p, entry);
	r->sent_count--;
	if (is_failed && strcmp(reply->failed.reason, "unavailable") == 0) {
		pending_postpone(r, p);
		return 0;
	}
	*answer = p->answer;
	*arg = p->arg;
	if (p->is_suspect)
		r->suspects--;
	pending_free(p);
	return 0;
}
