#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "tests/simulator/rows.h"

#define ROW_IDS_MAX 100000
/* So that the next id can always be counted. */
#define ROW_NUMBER_MAX (INT64_MAX / 2)

struct row_ops {
	const char *wants;
	bool (*fits)(const json_t *value);
	void (*set)(void *at, json_t *value);
	json_t *(*show)(const void *at);
	void (*drop)(void *at);
};

bool
id_list_has(const struct id_list *list, int64_t id)
{
	size_t i;

	for (i = 0; i < list->count; i++) {
		if (list->ids[i] == id)
			return true;
	}
	return false;
}

void
id_list_add(struct id_list *list, int64_t id)
{
	if (id_list_has(list, id))
		return;
	list->ids =
	    xreallocarray(list->ids, list->count + 1, sizeof(*list->ids));
	list->ids[list->count++] = id;
}

static bool
number_fits(const json_t *value)
{
	if (json_is_null(value))
		return true;
	return json_is_integer(value) && json_integer_value(value) >= 0 &&
	    json_integer_value(value) <= ROW_NUMBER_MAX;
}

static void
number_set(void *at, json_t *value)
{
	*(int64_t *)at = json_integer_value(value);
}

static json_t *
number_show(const void *at)
{
	return json_integer(*(const int64_t *)at);
}

static bool
flag_fits(const json_t *value)
{
	return json_is_boolean(value);
}

static void
flag_set(void *at, json_t *value)
{
	*(bool *)at = json_is_true(value);
}

static json_t *
flag_show(const void *at)
{
	return json_boolean(*(const bool *)at);
}

static void
plain_drop(void *at)
{
	(void)at;
}

static bool
text_fits(const json_t *value)
{
	return json_is_string(value);
}

static void
text_set(void *at, json_t *value)
{
	char **text = at;

	free(*text);
	*text = xstrdup(json_string_value(value));
}

static json_t *
text_show(const void *at)
{
	return json_string(*(char *const *)at);
}

static void
text_drop(void *at)
{
	free(*(char **)at);
}

static bool
ids_fit(const json_t *value)
{
	size_t i, count = json_array_size(value);

	if (json_is_null(value))
		return true;
	if (!json_is_array(value) || count > ROW_IDS_MAX)
		return false;
	for (i = 0; i < count; i++) {
		if (json_integer_value(json_array_get(value, i)) <= 0)
			return false;
	}
	return true;
}

static void
ids_set(void *at, json_t *value)
{
	struct id_list *list = at;
	size_t i;

	free(list->ids);
	list->ids = NULL;
	list->count = json_array_size(value);
	if (json_is_null(value))
		return;
	list->ids = xcalloc(list->count + 1, sizeof(*list->ids));
	for (i = 0; i < list->count; i++)
		list->ids[i] = json_integer_value(json_array_get(value, i));
}

static json_t *
ids_show(const void *at)
{
	const struct id_list *list = at;
	json_t *array;
	size_t i;

	if (list->ids == NULL)
		return json_null();
	array = json_array();
	for (i = 0; i < list->count; i++)
		json_array_append_new(array, json_integer(list->ids[i]));
	return array;
}

static void
ids_drop(void *at)
{
	free(((struct id_list *)at)->ids);
}

static bool
json_fits(const json_t *value)
{
	return value != NULL;
}

static void
json_set(void *at, json_t *value)
{
	json_t **json = at;

	json_decref(*json);
	*json = json_incref(value);
}

static json_t *
json_show(const void *at)
{
	json_t *json = *(json_t *const *)at;

	return json == NULL ? json_null() : json_incref(json);
}

static void
json_drop(void *at)
{
	json_decref(*(json_t **)at);
}

static const struct row_ops row_ops[] = {
    [ROW_NUMBER] = {"a number >= 0", number_fits, number_set, number_show,
	plain_drop},
    [ROW_FLAG] = {"true or false", flag_fits, flag_set, flag_show, plain_drop},
    [ROW_TEXT] = {"a string", text_fits, text_set, text_show, text_drop},
    [ROW_IDS] = {"a list of ids", ids_fit, ids_set, ids_show, ids_drop},
    [ROW_JSON] = {"a value", json_fits, json_set, json_show, json_drop},
};
static_assert(sizeof(row_ops) / sizeof(row_ops[0]) == ROW_KINDS,
    "an operation row for each kind");

static void *
field_at(const void *row, const struct row_field *field)
{
	return (char *)(uintptr_t)row + field->at;
}

void *
row_new(const struct row_type *type)
{
	void *row = xcalloc(1, type->size);
	size_t i;

	for (i = 0; i < type->field_count; i++) {
		if (type->fields[i].kind == ROW_TEXT)
			*(char **)field_at(row, &type->fields[i]) = xstrdup("");
	}
	return row;
}

void
row_free(const struct row_type *type, void *row)
{
	size_t i;

	if (row == NULL)
		return;
	for (i = 0; i < type->field_count; i++)
		row_ops[type->fields[i].kind].drop(
		    field_at(row, &type->fields[i]));
	free(row);
}

static const struct row_field *
field_named(const struct row_type *type, const char *name)
{
	size_t i;

	for (i = 0; i < type->field_count; i++) {
		if (strcmp(type->fields[i].name, name) == 0)
			return &type->fields[i];
	}
	return NULL;
}

static bool
is_other(const struct row_type *type, const char *name)
{
	const char *const *other;

	for (other = type->others; other != NULL && *other != NULL; other++) {
		if (strcmp(*other, name) == 0)
			return true;
	}
	return false;
}

int
row_check(const struct row_type *type, json_t *from, struct error *e)
{
	const struct row_field *field;
	const char *name;
	json_t *value;

	if (!json_is_object(from))
		return error_set(e, "%s: not an object", type->name);
	json_object_foreach (from, name, value) {
		field = field_named(type, name);
		if (field == NULL && !is_other(type, name))
			return error_set(
			    e, "%s: no member \"%.40s\"", type->name, name);
		if (field != NULL && !row_ops[field->kind].fits(value))
			return error_set(e, "%s.%s: not %s", type->name, name,
			    row_ops[field->kind].wants);
	}
	return 0;
}

void
row_set(const struct row_type *type, void *row, json_t *from)
{
	const struct row_field *field;
	const char *name;
	json_t *value;

	json_object_foreach (from, name, value) {
		field = field_named(type, name);
		if (field != NULL)
			row_ops[field->kind].set(field_at(row, field), value);
	}
}

json_t *
row_json(const struct row_type *type, const void *row)
{
	json_t *object = json_object();
	const struct row_field *field;
	size_t i;

	for (i = 0; i < type->field_count; i++) {
		field = &type->fields[i];
		json_object_set_new(object, field->name,
		    row_ops[field->kind].show(field_at(row, field)));
	}
	return object;
}
