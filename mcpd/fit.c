#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/utf8.h"
#include "mcpd/fit.h"

#define INDENT JSON_INDENT(2)
/* A text that is shorter stays, whatever the room. */
#define TEXT_LEAST 64

static char *
text_of(const json_t *json, size_t *len)
{
	char *text = json_dumps(json, INDENT);

	if (text == NULL)
		fatalx("a result cannot be written as JSON");
	*len = strlen(text);
	return text;
}

/* ---- what is cut ------------------------------------------------------ */

/* Cut one object's content to MOST bytes, at a character. */
static void
cut_content(json_t *object, size_t most)
{
	json_t *content = json_object_get(object, "content");
	size_t len = json_string_length(content);
	json_t *cut;

	if (!json_is_string(content) || len <= most)
		return;
	cut = json_stringn(json_string_value(content),
	    utf8_cut(json_string_value(content), len, most));
	(void)json_object_set_new(object, "content", cut);
	(void)json_object_set_new(object, "content_truncated", json_true());
}

/* CHANGE every object at any depth. Results are made by us: they are shallow.
 */
static void
change_objects(
    json_t *json, void (*change)(json_t *object, size_t most), size_t most)
{
	const char *name;
	json_t *value;
	size_t i;

	if (json_is_object(json)) {
		change(json, most);
		json_object_foreach (json, name, value)
			change_objects(value, change, most);
	}
	json_array_foreach (json, i, value)
		change_objects(value, change, most);
}

static size_t
longest_content(const json_t *json)
{
	size_t i, len,
	    most = json_string_length(json_object_get(json, "content"));
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)json, name, value) {
		len = longest_content(value);
		most = len > most ? len : most;
	}
	json_array_foreach (json, i, value) {
		len = longest_content(value);
		most = len > most ? len : most;
	}
	return most;
}

/* ---- what is left out ------------------------------------------------- */

/* How long the texts of a member are; of what is no text, 0. */
static size_t
texts_len(const json_t *value)
{
	const json_t *element;
	size_t i, len = json_string_length(value);

	json_array_foreach (value, i, element)
		len += json_string_length(element);
	return len;
}

/* The members of one object whose texts are longer than MOST. */
static void
leave_out_members(json_t *object, size_t most)
{
	json_t *value, *names = json_object_get(object, "left_out");
	const char *name;
	void *next;

	names = names == NULL ? json_array() : json_incref(names);
	json_object_foreach_safe(object, next, name, value)
	{
		if (value == names || texts_len(value) <= most)
			continue;
		(void)json_array_append_new(names, json_string(name));
		(void)json_object_del(object, name);
	}
	if (json_array_size(names) != 0)
		(void)json_object_set(object, "left_out", names);
	json_decref(names);
}

/* ---- the whole -------------------------------------------------------- */

/* How long TEXT is as a JSON string. */
static size_t
string_len(const char *text, size_t len)
{
	struct buffer b = {0};

	json_write_string(&b, text, len);
	len = b.len;
	buffer_free(&b);
	return len;
}

/* No byte of a text becomes more than six. */
static bool
has_room(const char *text, size_t len, size_t room)
{
	return len <= (room - 2) / 6 || string_len(text, len) <= room;
}

/* TEXT, taken over, or NULL. */
static char *
text_or_none(char *text, size_t len, size_t room)
{
	if (has_room(text, len, room))
		return text;
	free(text);
	return NULL;
}

char *
fit_whole(const json_t *json, size_t room, size_t *len)
{
	char *text = text_of(json, len);

	return text_or_none(text, *len, room);
}

/*
 * To how many bytes contents are cut, the longest of which has LONGEST. Not all
 * of the text is contents, so in proportion it is never too few.
 */
static size_t
cut_next(size_t longest, const char *text, size_t len, size_t room)
{
	size_t most = longest < FIT_TEXT_MAX ? longest : FIT_TEXT_MAX;
	size_t fair = most;

	if (len <= FIT_TEXT_MAX)
		fair = most * room / string_len(text, len);
	return fair < most * 7 / 8 ? fair : most * 7 / 8;
}

char *
fit_text(json_t *json, size_t room, size_t *len)
{
	char *text = text_of(json, len);
	size_t longest, most;

	while ((*len > FIT_TEXT_MAX || !has_room(text, *len, room)) &&
	    (longest = longest_content(json)) > 0) {
		change_objects(
		    json, cut_content, cut_next(longest, text, *len, room));
		free(text);
		text = text_of(json, len);
	}
	for (most = FIT_TEXT_MAX;
	     !has_room(text, *len, room) && most >= TEXT_LEAST; most /= 2) {
		change_objects(json, leave_out_members, most);
		free(text);
		text = text_of(json, len);
	}
	return text_or_none(text, *len, room);
}
