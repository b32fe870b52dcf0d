#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "mcpd/params.h"

static int
read_id(const json_t *value, const char *name, void *out, struct error *e)
{
	struct opt *id = out;

	if (json_id_argument(value, name, &id->value, e) == -1)
		return -1;
	id->has = true;
	return 0;
}

static int
read_text(const json_t *value, const char *name, void *out, struct error *e)
{
	struct json_text *text = out;

	if (!json_is_string(value))
		return error_set(e, "%s is not a string", name);
	text->bytes = json_string_value(value);
	text->len = json_string_length(value);
	text->has_nul = strlen(text->bytes) != text->len;
	return 0;
}

static int
read_links(const json_t *value, const char *name, void *out, struct error *e)
{
	const json_t **links = out;
	const json_t *link;
	size_t i;

	if (!json_is_array(value))
		return error_set(e, "%s is not a list of strings", name);
	json_array_foreach (value, i, link) {
		if (!json_is_string(link))
			return error_set(e, "%s[%zu] is not a string", name, i);
	}
	*links = value;
	return 0;
}

static int (*const readers[])(
    const json_t *value, const char *name, void *out, struct error *e) = {
    [PARAM_ID] = read_id,
    [PARAM_TEXT] = read_text,
    [PARAM_LINKS] = read_links,
};
static_assert(sizeof(readers) / sizeof(readers[0]) == PARAM_KIND_COUNT,
    "a reader for every kind");

static const struct param *
param_find(const struct param *rows, size_t count, const char *name)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	}
	return NULL;
}

static int
param_read(const json_t *params, const struct param *row, struct arguments *out,
    struct error *e)
{
	const json_t *value = json_object_get(params, row->name);

	if (json_is_null(value) && row->need == JSON_MAY_BE_NULL)
		value = NULL;
	if (row->kind == PARAM_TEXT && json_is_string(value) &&
	    json_string_length(value) == 0)
		value = NULL;
	if (value == NULL && row->need == JSON_REQUIRED)
		return error_set(e, "%s is missing", row->name);
	if (value == NULL)
		return 0;
	return readers[row->kind](
	    value, row->name, (char *)out + row->offset, e);
}

int
params_read(const json_t *params, const struct param *rows, size_t count,
    struct arguments *out, struct error *e)
{
	const char *name;
	json_t *value;
	size_t i;

	memset(out, 0, sizeof(*out));
	json_object_foreach ((json_t *)params, name, value) {
		if (param_find(rows, count, name) == NULL)
			return error_set(
			    e, "unknown parameter: %s", log_safe(name));
	}
	for (i = 0; i < count; i++) {
		if (param_read(params, &rows[i], out, e) == -1)
			return -1;
	}
	return 0;
}
