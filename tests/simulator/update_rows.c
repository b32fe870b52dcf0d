#include <stdlib.h>
#include <string.h>

#include "tests/simulator/update.h"

/* Rows come as a list, or as a map whose keys are their ids. */
static json_t *
rows_list(json_t *value)
{
	json_t *list = json_array(), *row;
	const char *key;

	if (json_is_array(value))
		json_array_extend(list, value);
	json_object_foreach (value, key, row) {
		json_array_append(list, row);
	}
	return list;
}

static int
keys_check(const struct member *m, json_t *value, struct error *e)
{
	const char *key;
	json_t *row;
	char *end;

	json_object_foreach (value, key, row) {
		if (strtoll(key, &end, 10) !=
			json_integer_value(json_object_get(row, "id")) ||
		    *end != '\0')
			return error_set(e, "%s: key %.20s is not its row's id",
			    m->name, key);
	}
	return 0;
}

/* The history of a recording is shown as it came, so it has to be one. */
static int
history_check(const struct member *m, json_t *row, struct error *e)
{
	json_t *events = json_object_get(row, "events"), *event;
	size_t i;

	if (events != NULL && !json_is_array(events))
		return error_set(e, "%s.events: not a list", m->name);
	json_array_foreach (events, i, event) {
		if (json_integer_value(json_object_get(event, "id")) <= 0 ||
		    !json_is_string(json_object_get(event, "action")))
			return error_set(
			    e, "%s.events: id or action missing", m->name);
	}
	return 0;
}

int
rows_check(const struct member *m, json_t *value, struct error *e)
{
	json_t *list, *row;
	size_t i;
	int result = 0;

	if (!json_is_array(value) && !json_is_object(value))
		return error_set(e, "%s: not a list or a map", m->name);
	if (keys_check(m, value, e) == -1)
		return -1;
	list = rows_list(value);
	json_array_foreach (list, i, row) {
		if (result == 0)
			result = row_check(m->table->type, row, e);
		if (result == 0)
			result = history_check(m, row, e);
		if (result == 0 &&
		    json_integer_value(json_object_get(row, "id")) <= 0)
			result =
			    error_set(e, "%s: a row without its id", m->name);
	}
	json_decref(list);
	return result;
}

/* What a new recording or boost of the past has when nothing is said. */
static void
row_default(const struct member *m, void *row)
{
	struct recording *r = row;
	struct boost *b = row;

	if (m->table == &world.boosts)
		text_replace(&b->created_at, WORLD_DATE);
	if (m->table != &world.recordings)
		return;
	text_replace(&r->status, "active");
	text_replace(&r->created_at, WORLD_DATE);
	text_replace(&r->updated_at, WORLD_DATE);
}

void
rows_apply(const struct member *m, json_t *value)
{
	json_t *list = rows_list(value), *from;
	int64_t id;
	void *row;
	size_t i;

	json_array_foreach (list, i, from) {
		id = json_integer_value(json_object_get(from, "id"));
		row = row_find(m->table, id);
		if (row == NULL) {
			row = row_new(m->table->type);
			*(int64_t *)row = id;
			row_default(m, row);
			row_insert(m->table, row);
		}
		row_set(m->table->type, row, from);
	}
	json_decref(list);
}
