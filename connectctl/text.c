#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "connectctl/text.h"

#define INDENT 2

void
text_scalar(const json_t *value)
{
	char *line;
	size_t len;

	switch (json_typeof(value)) {
	case JSON_STRING:
		line = text_single_line(
		    json_string_value(value), json_string_length(value), &len);
		(void)fputs(line, stdout);
		free(line);
		break;
	case JSON_INTEGER:
		(void)printf("%lld", (long long)json_integer_value(value));
		break;
	case JSON_REAL:
		(void)printf("%g", json_real_value(value));
		break;
	case JSON_TRUE:
		(void)fputs("yes", stdout);
		break;
	case JSON_FALSE:
		(void)fputs("no", stdout);
		break;
	default:
		(void)fputs("-", stdout);
		break;
	}
}

/* A member's name may come from the file's side as well. */
static void
print_name(const char *name)
{
	size_t len;
	char *line = text_single_line(name, strlen(name), &len);

	(void)fputs(line, stdout);
	free(line);
}

static bool
is_scalar(const json_t *value)
{
	return !json_is_object(value) && !json_is_array(value);
}

static bool
is_scalar_list(const json_t *list)
{
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		if (!is_scalar(json_array_get(list, i)))
			return false;
	}
	return true;
}

static void
print_list(const json_t *list, int indent)
{
	size_t i, count = json_array_size(list);

	if (count == 0 || is_scalar_list(list)) {
		for (i = 0; i < count; i++) {
			(void)fputs(i == 0 ? "" : ", ", stdout);
			text_scalar(json_array_get(list, i));
		}
		(void)puts(count == 0 ? "none" : "");
		return;
	}
	(void)putchar('\n');
	for (i = 0; i < count; i++) {
		if (json_is_object(json_array_get(list, i)))
			text_members(json_array_get(list, i), indent + INDENT);
		if (i + 1 < count)
			(void)putchar('\n');
	}
}

void
text_members(const json_t *object, int indent)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)object, name, value) {
		(void)printf("%*s", indent, "");
		print_name(name);
		(void)fputs(": ", stdout);
		if (json_is_array(value)) {
			print_list(value, indent);
		} else if (json_is_object(value)) {
			(void)putchar('\n');
			text_members(value, indent + INDENT);
		} else {
			text_scalar(value);
			(void)putchar('\n');
		}
	}
}

/* A pointer, a record or a transition: its scalars, name=value. */
void
text_line(const json_t *line)
{
	const json_t *type = json_object_get(line, "type");
	const char *name, *space = " ";
	json_t *value;

	if (json_is_string(type))
		text_scalar(type);
	else
		space = "";
	json_object_foreach ((json_t *)(uintptr_t)line, name, value) {
		if (strcmp(name, "type") == 0 || json_is_null(value) ||
		    (json_is_string(value) && json_string_length(value) == 0) ||
		    (!is_scalar(value) && !is_scalar_list(value)))
			continue;
		(void)fputs(space, stdout);
		space = " ";
		print_name(name);
		(void)putchar('=');
		if (is_scalar(value))
			text_scalar(value);
		else
			(void)printf("(%zu)", json_array_size(value));
	}
	(void)putchar('\n');
}

void
text_events(const json_t *data)
{
	const json_t *list =
	    json_is_array(data) ? data : json_object_get(data, "events");
	size_t i;

	for (i = 0; i < json_array_size(list); i++)
		text_line(json_array_get(list, i));
}
