#include <stdlib.h>

#include "common/xmalloc.h"
#include "intake/members.h"

struct member_read {
	struct api *api;
	struct lists *lists;
	int64_t bucket, person, seen_at_ns;
	struct reader reader;
	struct list_wait wait;
	bool is_member;
	bool is_telling;
	member_done done;
	void *arg;
};

static bool
list_has(const struct list *list, int64_t person)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		if (list->items[i].id == person)
			return true;
	return false;
}

enum member_says
member_look(const struct list *list, int64_t person, int64_t seen_at_ns)
{
	if (list == NULL)
		return MEMBER_ASK;
	if (list_has(list, person))
		return MEMBER_YES;
	if (list->started_ns >= seen_at_ns)
		return MEMBER_NO;
	return list_age_ms(list) < LIST_FLOOR_MS ? MEMBER_UNVERIFIED
						 : MEMBER_ASK;
}

static void
read_free(struct member_read *m)
{
	reader_stop(&m->reader);
	list_unwait(&m->wait);
	free(m);
}

static void
read_finish(enum read_outcome outcome, void *arg)
{
	struct member_read *m = arg;

	m->is_telling = true;
	m->done(outcome, m->is_member, m->arg);
	read_free(m);
}

/* Look at what is kept; load it if that is too old to say no. */
static void
look(void *arg)
{
	struct member_read *m = arg;

	switch (member_look(list_kept(m->lists, LIST_PEOPLE, m->bucket),
	    m->person, m->seen_at_ns)) {
	case MEMBER_YES:
		m->is_member = true;
		reader_ended(&m->reader, READ_OK, 0);
		break;
	case MEMBER_NO:
		reader_ended(&m->reader, READ_OK, 0);
		break;
	case MEMBER_UNVERIFIED:
		reader_ended(&m->reader, READ_UNVERIFIED, 0);
		break;
	case MEMBER_ASK:
		list_load(m->lists, LIST_PEOPLE, m->bucket, &m->wait);
		break;
	}
}

/* A load that had begun before the event was seen may leave it open. */
static void
loaded(enum read_outcome outcome, int64_t retry_after, void *arg)
{
	struct member_read *m = arg;

	if (outcome == READ_OK)
		look(m);
	else
		reader_ended(&m->reader, outcome, retry_after);
}

struct member_read *
member_read(struct api *api, struct lists *lists, int64_t bucket,
    int64_t person, int64_t seen_at_ns, const int64_t *limits,
    struct read_budget *budget, member_done done, void *arg)
{
	struct member_read *m = xcalloc(1, sizeof(*m));

	m->api = api;
	m->lists = lists;
	m->bucket = bucket;
	m->person = person;
	m->seen_at_ns = seen_at_ns;
	m->done = done;
	m->arg = arg;
	m->wait.loaded = loaded;
	m->wait.arg = m;
	m->reader = (struct reader){.limits = limits,
	    .budget = budget,
	    .attempt = look,
	    .done = read_finish,
	    .arg = m};
	reader_begin(&m->reader, api->base);
	return m;
}

void
member_cancel(struct member_read *m)
{
	if (m != NULL && !m->is_telling)
		read_free(m);
}
