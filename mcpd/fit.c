#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/utf8.h"
#include "mcpd/fit.h"

#define INDENT JSON_INDENT(2)

static char *
text_of(const json_t *json, size_t *len)
{
	char *text = json_dumps(json, INDENT);

	if (text == NULL)
		fatalx("a result cannot be written as JSON");
	*len = strlen(text);
	return text;
}

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

/* Every content at any depth. Results are made by us: they are shallow. */
static void
cut_contents(json_t *json, size_t most)
{
	const char *name;
	json_t *value;
	size_t i;

	if (json_is_object(json)) {
		cut_content(json, most);
		json_object_foreach (json, name, value)
			cut_contents(value, most);
	}
	json_array_foreach (json, i, value)
		cut_contents(value, most);
}

char *
fit_text(json_t *json, size_t *len)
{
	size_t most = FIT_TEXT_MAX;
	char *text = text_of(json, len);

	while (*len > FIT_TEXT_MAX && most > 0) {
		most = most * 7 / 8;
		cut_contents(json, most);
		free(text);
		text = text_of(json, len);
	}
	return text;
}
