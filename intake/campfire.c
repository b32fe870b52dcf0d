/*
 * Where is a chat line? The feed does not say. Candidates come from what is
 * known, then from what is read anew, cheapest first; each is asked once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/xmalloc.h"
#include "intake/recording.h"
#include "intake/timer.h"

#define CANDIDATES_MOST 50
#define LINE_BYTES_MOST ((size_t)16 * 1024 * 1024)

struct campfire_search {
	struct api *api;
	struct lists *lists;
	int64_t bucket, line;
	int step;           /* of the table below */
	bool is_dock_fresh; /* read in this search: not to be asked again */
	struct config_ids tried;
	int64_t asked; /* the candidate under way */
	struct event *begin;
	struct api_call *call;
	struct list_wait wait;
	bool is_telling;
	campfire_done done;
	void *arg;
};

static void search_go_on(struct campfire_search *s);

static void
search_free(struct campfire_search *s)
{
	list_unwait(&s->wait);
	api_cancel(s->call);
	event_free(s->begin);
	free(s->tried.list);
	free(s);
}

static void
search_finish(struct campfire_search *s, enum read_outcome outcome,
    json_t *tree, int64_t retry_after)
{
	s->is_telling = true;
	s->done(outcome, tree, s->asked, retry_after, s->arg);
	search_free(s);
}

/* ---- the candidates ---------------------------------------------------- */

/* The next id of this bucket that was not tried; 0: none. */
static int64_t
candidate(const struct campfire_search *s, enum list_kind kind)
{
	const struct list *list;
	size_t i;

	list = list_kept(s->lists, kind, kind == LIST_CHATS ? 0 : s->bucket);
	if (list == NULL)
		return 0;
	for (i = 0; i < list->count; i++)
		if (list->items[i].bucket == s->bucket &&
		    !config_ids_has(&s->tried, list->items[i].id))
			return list->items[i].id;
	return 0;
}

static void
list_came(enum read_outcome outcome, int64_t retry_after, void *arg)
{
	struct campfire_search *s = arg;

	if (outcome != READ_OK) {
		search_finish(s, outcome, NULL, retry_after);
		return;
	}
	s->step++;
	search_go_on(s);
}

static bool
load(struct campfire_search *s, enum list_kind kind)
{
	list_load(s->lists, kind, kind == LIST_CHATS ? 0 : s->bucket, &s->wait);
	return true;
}

/* Read the dock, unless it is kept. */
static bool
load_dock(struct campfire_search *s)
{
	if (list_kept(s->lists, LIST_DOCK, s->bucket) != NULL)
		return false;
	s->is_dock_fresh = true;
	return load(s, LIST_DOCK);
}

/* It was kept, and did not have it: read it again. */
static bool
load_dock_again(struct campfire_search *s)
{
	const struct list *list = list_kept(s->lists, LIST_DOCK, s->bucket);

	if (s->is_dock_fresh ||
	    (list != NULL && list_age_ms(list) < LIST_FLOOR_MS))
		return false;
	return load(s, LIST_DOCK);
}

static bool
load_chats(struct campfire_search *s)
{
	const struct list *list = list_kept(s->lists, LIST_CHATS, 0);

	if (list != NULL && list_age_ms(list) < LIST_FLOOR_MS)
		return false;
	return load(s, LIST_CHATS);
}

/*
 * In this order. A step may begin with a load (then the next one comes when
 * it is there), or else ask for the candidates of one list.
 */
static const struct {
	bool (*load)(struct campfire_search *s); /* false: not needed */
	enum list_kind from;
} steps[] = {
    {load_dock, 0},
    {NULL, LIST_DOCK},
    {NULL, LIST_CHATS}, /* only if it is kept */
    {load_dock_again, 0},
    {NULL, LIST_DOCK},
    {load_chats, 0},
    {NULL, LIST_CHATS},
};
#define STEPS ((int)(sizeof(steps) / sizeof(steps[0])))

/* ---- asking them ------------------------------------------------------- */

static void
line_answered(const struct api_answer *answer, void *arg)
{
	struct campfire_search *s = arg;
	enum read_outcome outcome;
	int64_t retry_after;
	json_t *tree;

	s->call = NULL;
	if (read_is_missing(answer)) {
		search_go_on(s); /* not here */
		return;
	}
	outcome = read_classify(answer, &tree, &retry_after);
	search_finish(s, outcome, tree, retry_after);
}

static void
candidate_ask(struct campfire_search *s, int64_t id)
{
	char path[96];

	s->asked = id;
	config_ids_add(&s->tried, id);
	(void)snprintf(path, sizeof(path), "chats/%" PRId64 "/lines/%" PRId64,
	    id, s->line);
	s->call = api_get(s->api, path, LINE_BYTES_MOST, line_answered, s);
}

/* One step further, as far as nothing has to be waited for. */
static void
search_go_on(struct campfire_search *s)
{
	int64_t id;

	for (; s->step < STEPS; s->step++) {
		if (steps[s->step].load != NULL) {
			if (steps[s->step].load(s))
				return;
			continue;
		}
		id = candidate(s, steps[s->step].from);
		if (id == 0)
			continue;
		/* With some left untried it is not known to be nowhere. */
		if (s->tried.count >= CANDIDATES_MOST)
			search_finish(s, READ_AGAIN, NULL, 0);
		else
			candidate_ask(s, id);
		return;
	}
	search_finish(s, READ_UNRESOLVED, NULL, 0);
}

static void
search_begin(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	search_go_on(arg);
}

struct campfire_search *
campfire_search(struct api *api, struct lists *lists, int64_t bucket,
    int64_t line, campfire_done done, void *arg)
{
	struct campfire_search *s = xcalloc(1, sizeof(*s));

	s->api = api;
	s->lists = lists;
	s->bucket = bucket;
	s->line = line;
	s->done = done;
	s->arg = arg;
	s->wait.loaded = list_came;
	s->wait.arg = s;
	s->begin = timer_new(api->base, search_begin, s);
	timer_start(s->begin, 0);
	return s;
}

void
campfire_cancel(struct campfire_search *s)
{
	if (s != NULL && !s->is_telling)
		search_free(s);
}
