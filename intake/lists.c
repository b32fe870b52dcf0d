#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "intake/lists.h"

#define LISTS_MOST 4096
#define PAGES_MOST 10000
#define LIST_BYTES_MOST ((size_t)16 * 1024 * 1024)

/* One list on its way. */
struct load {
	LIST_ENTRY(load) entry;
	struct lists *lists;
	enum list_kind kind;
	int64_t key;
	struct api_call *call;
	int pages;
	int64_t started_ns, started_ms;
	struct list_item *items;
	size_t count;  /* of what was wanted */
	int64_t seen;  /* of all */
	int64_t total; /* X-Total-Count, -1: not said */
	LIST_HEAD(, list_wait) waits;
};

struct lists {
	struct api *api;
	LIST_HEAD(, list) kept;
	size_t kept_count;
	LIST_HEAD(, load) loads;
};

/* Fill ITEM's id; false: an element that is not wanted. */
typedef bool (*item_reader)(const json_t *from, struct list_item *item);

static bool
read_person(const json_t *from, struct list_item *item)
{
	struct json_text type = {0};
	bool is_client = true;

	if (json_member_id(from, "id", JSON_REQUIRED, &item->id, NULL) == -1 ||
	    json_member_bool(from, "client", JSON_REQUIRED, &is_client, NULL) ==
		-1 ||
	    json_member_string(
		from, "personable_type", JSON_MAY_BE_NULL, &type, NULL) == -1)
		return false;
	return !is_client &&
	    !(type.bytes != NULL && strcmp(type.bytes, "Agent") == 0);
}

static bool
read_tool(const json_t *from, struct list_item *item)
{
	struct json_text name = {0};

	if (json_member_string(from, "name", JSON_REQUIRED, &name, NULL) ==
		-1 ||
	    strcmp(name.bytes, "chat") != 0)
		return false;
	return json_member_id(from, "id", JSON_REQUIRED, &item->id, NULL) == 0;
}

static bool
read_chat(const json_t *from, struct list_item *item)
{
	json_t *bucket;

	return json_member_id(from, "id", JSON_REQUIRED, &item->id, NULL) ==
	    0 &&
	    json_member_object(from, "bucket", JSON_REQUIRED, &bucket, NULL) ==
	    0 &&
	    json_member_id(bucket, "id", JSON_REQUIRED, &item->bucket, NULL) ==
	    0;
}

static const struct {
	const char *before, *after; /* the key in the path; NULL: no key */
	const char *member;         /* of the answer; NULL: it is the array */
	int64_t most;               /* elements; more is no answer */
	bool may_be_missing;        /* 404: an empty list */
	item_reader read;
} kinds[] = {
    [LIST_PEOPLE] = {"projects/", "/people.json", NULL, 100000, false,
	read_person},
    [LIST_DOCK] = {"projects/", "", "dock", 1000, true, read_tool},
    [LIST_CHATS] = {"chats.json", NULL, NULL, 1000, false, read_chat},
};
static_assert(sizeof(kinds) / sizeof(kinds[0]) == LIST_KINDS,
    "each list has its request");

struct lists *
lists_new(struct api *api)
{
	struct lists *lists = xcalloc(1, sizeof(*lists));

	lists->api = api;
	LIST_INIT(&lists->kept);
	LIST_INIT(&lists->loads);
	return lists;
}

int64_t
list_age_ms(const struct list *list)
{
	return clock_monotonic_ms() - list->started_ms;
}

static void
list_drop(struct lists *lists, struct list *list)
{
	LIST_REMOVE(list, entry);
	lists->kept_count--;
	free(list->items);
	free(list);
}

/* At the bound those too old go; if that is not enough, all. */
static void
lists_bound(struct lists *lists)
{
	struct list *list, *next;
	int pass;

	for (pass = 0; pass < 2 && lists->kept_count >= LISTS_MOST; pass++) {
		for (list = LIST_FIRST(&lists->kept); list != NULL;
		     list = next) {
			next = LIST_NEXT(list, entry);
			if (pass == 1 || list_age_ms(list) > LIST_FRESH_MS)
				list_drop(lists, list);
		}
	}
}

static struct list *
list_find(struct lists *lists, enum list_kind kind, int64_t key)
{
	struct list *list;

	LIST_FOREACH (list, &lists->kept, entry)
		if (list->kind == kind && list->key == key)
			return list;
	return NULL;
}

const struct list *
list_kept(struct lists *lists, enum list_kind kind, int64_t key)
{
	struct list *list = list_find(lists, kind, key);

	return list != NULL && list_age_ms(list) <= LIST_FRESH_MS ? list : NULL;
}

/* ---- loading ---------------------------------------------------------- */

/* Keep what came, unless something newer is there. */
static void
load_keep(struct load *load)
{
	struct lists *lists = load->lists;
	struct list *list = list_find(lists, load->kind, load->key);

	if (list != NULL && list->started_ms > load->started_ms)
		return;
	if (list != NULL)
		list_drop(lists, list);
	lists_bound(lists);
	list = xcalloc(1, sizeof(*list));
	list->kind = load->kind;
	list->key = load->key;
	list->started_ns = load->started_ns;
	list->started_ms = load->started_ms;
	list->items = load->items;
	list->count = load->count;
	load->items = NULL;
	LIST_INSERT_HEAD(&lists->kept, list, entry);
	lists->kept_count++;
}

/* Tell all who wait now; they may ask for the same list again. */
static void
load_finish(struct load *load, enum read_outcome outcome, int64_t retry_after)
{
	struct list_wait *w;

	LIST_REMOVE(load, entry);
	if (outcome == READ_OK)
		load_keep(load);
	while ((w = LIST_FIRST(&load->waits)) != NULL) {
		LIST_REMOVE(w, entry);
		w->is_waiting = false;
		w->loaded(outcome, retry_after, w->arg);
	}
	api_cancel(load->call);
	free(load->items);
	free(load);
}

static void
load_add(struct load *load, const json_t *from)
{
	struct list_item item = {.bucket = load->key};

	if (!kinds[load->kind].read(from, &item))
		return;
	/* Sizes double: a list is as long as the server likes. */
	if ((load->count & (load->count - 1)) == 0)
		load->items = xreallocarray(load->items,
		    load->count == 0 ? 1 : load->count * 2,
		    sizeof(*load->items));
	load->items[load->count++] = item;
}

static enum read_outcome
load_take(struct load *load, const json_t *tree)
{
	const char *member = kinds[load->kind].member;
	const json_t *array = tree;
	size_t i;

	if (member != NULL)
		array = json_object_get(tree, member);
	if (!json_is_array(array))
		return READ_AGAIN;
	load->seen += (int64_t)json_array_size(array);
	if (load->seen > kinds[load->kind].most)
		return READ_AGAIN;
	for (i = 0; i < json_array_size(array); i++)
		load_add(load, json_array_get(array, i));
	return READ_OK;
}

static void load_answered(const struct api_answer *answer, void *arg);

/* After a whole page: the next one, or the end; a short list is none. */
static void
load_go_on(struct load *load, const struct http_answer *http)
{
	if (load->pages == 1)
		load->total = http->total_count;
	if (http->next != NULL && kinds[load->kind].member == NULL &&
	    load->pages < PAGES_MOST) {
		load->call = api_follow(load->lists->api, http->next,
		    LIST_BYTES_MOST, load_answered, load);
		return;
	}
	load_finish(load, load->total > load->seen ? READ_AGAIN : READ_OK, 0);
}

static void
load_answered(const struct api_answer *answer, void *arg)
{
	struct load *load = arg;
	enum read_outcome outcome;
	int64_t retry_after;
	json_t *tree;

	load->call = NULL;
	load->pages++;
	if (kinds[load->kind].may_be_missing && read_is_missing(answer)) {
		load_finish(load, READ_OK, 0);
		return;
	}
	outcome = read_classify(answer, &tree, &retry_after);
	if (outcome == READ_OK)
		outcome = load_take(load, tree);
	json_decref(tree);
	if (outcome == READ_OK)
		load_go_on(load, answer->http);
	else
		load_finish(load, outcome, retry_after);
}

static struct load *
load_start(struct lists *lists, enum list_kind kind, int64_t key)
{
	struct load *load = xcalloc(1, sizeof(*load));
	char path[128];

	load->lists = lists;
	load->kind = kind;
	load->key = key;
	load->total = -1;
	load->started_ns = clock_wall_ns();
	load->started_ms = clock_monotonic_ms();
	LIST_INIT(&load->waits);
	LIST_INSERT_HEAD(&lists->loads, load, entry);
	if (kinds[kind].after != NULL)
		(void)snprintf(path, sizeof(path), "%s%" PRId64 "%s",
		    kinds[kind].before, key, kinds[kind].after);
	else
		(void)snprintf(path, sizeof(path), "%s", kinds[kind].before);
	load->call =
	    api_get(lists->api, path, LIST_BYTES_MOST, load_answered, load);
	return load;
}

void
list_load(
    struct lists *lists, enum list_kind kind, int64_t key, struct list_wait *w)
{
	struct load *load;

	LIST_FOREACH (load, &lists->loads, entry)
		if (load->kind == kind && load->key == key)
			break;
	if (load == NULL)
		load = load_start(lists, kind, key);
	w->is_waiting = true;
	LIST_INSERT_HEAD(&load->waits, w, entry);
}

void
list_unwait(struct list_wait *w)
{
	if (!w->is_waiting)
		return;
	w->is_waiting = false;
	LIST_REMOVE(w, entry);
}
