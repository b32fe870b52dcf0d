#include <event2/http.h>
#include <string.h>

#include "tests/simulator/exchange.h"
#include "tests/simulator/render.h"

#define HTTP_FORBIDDEN 403
#define HISTORY_PAGE 15

void
profile_show(struct exchange *x)
{
	const struct person *p = world_person(x->caller);
	const struct person *boss = world_person(p->boss_id);
	json_t *o = person_json(p);

	if (boss != NULL)
		json_object_set_new(o, "boss",
		    json_pack("{s:I,s:s}", "id", (json_int_t)boss->id, "name",
			boss->name));
	answer_json(x, HTTP_OK, o);
}

void
person_show(struct exchange *x)
{
	const struct person *p = world_person(x->ids[1]);

	if (p == NULL)
		answer_empty(x, HTTP_NOTFOUND);
	else if (p->readable_by.ids != NULL && p->id != x->caller &&
	    !id_list_has(&p->readable_by, x->caller))
		answer_empty(x, HTTP_FORBIDDEN);
	else
		answer_json(x, HTTP_OK, person_json(p));
}

void
project_show(struct exchange *x)
{
	const struct project *p = world_project(x->ids[1]);

	if (p == NULL || !world_is_member(p->id, x->caller))
		answer_empty(x, HTTP_NOTFOUND);
	else
		answer_json(x, HTTP_OK, project_json(p));
}

/* Exactly this type, in a project of the caller's. */
static void
typed_show(struct exchange *x, const char *type)
{
	const struct recording *r = world_recording(x->ids[1], x->caller);

	if (r == NULL || strcmp(r->type, type) != 0)
		answer_empty(x, HTTP_NOTFOUND);
	else
		answer_json(x, HTTP_OK, recording_json(r));
}

void
comment_show(struct exchange *x)
{
	typed_show(x, "Comment");
}

void
message_show(struct exchange *x)
{
	typed_show(x, "Message");
}

void
todo_show(struct exchange *x)
{
	typed_show(x, "Todo");
}

void
card_show(struct exchange *x)
{
	typed_show(x, "Kanban::Card");
}

void
line_show(struct exchange *x)
{
	const struct recording *r = world_recording(x->ids[2], x->caller);

	if (r == NULL || !recording_is_line(r) || r->parent_id != x->ids[1])
		answer_empty(x, HTTP_NOTFOUND);
	else
		answer_json(x, HTTP_OK, recording_json(r));
}

void
subscription_show(struct exchange *x)
{
	const struct recording *r = world_recording(x->ids[1], x->caller);

	if (r == NULL)
		answer_empty(x, HTTP_NOTFOUND);
	else
		answer_json(x, HTTP_OK, subscription_json(r, x->caller));
}

void
history_show(struct exchange *x)
{
	const struct recording *r = world_recording(x->ids[1], x->caller);
	size_t page = exchange_page(x), count, at, end;
	json_t *list;

	if (r == NULL || page == 0) {
		answer_empty(x, r == NULL ? HTTP_NOTFOUND : HTTP_BADREQUEST);
		return;
	}
	list = json_array();
	count = json_array_size(r->events);
	at = (page - 1) * HISTORY_PAGE;
	end = at + HISTORY_PAGE < count ? at + HISTORY_PAGE : count;
	for (; at < end; at++)
		json_array_append_new(list,
		    history_json(r, json_array_get(r->events, count - 1 - at)));
	answer_json(x, HTTP_OK, list);
}

/* The live lane is not served yet. */
void
cable_open(struct exchange *x)
{
	answer_empty(x, HTTP_NOTFOUND);
}
