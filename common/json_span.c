#include <stdint.h>
#include <string.h>

#include "common/json.h"
#include "common/json_scan.h"

/* The value that SCAN comes to next; its first event in *FIRST. */
static bool
span_next(struct json_scan *s, struct json_span *out, enum json_event *first)
{
	size_t start;

	*first = json_scan_next(s);
	if (*first == JSON_EVENT_CLOSE || *first == JSON_EVENT_END)
		return false;
	start = s->start;
	if (!json_scan_skip(s, *first))
		return false;
	*out = (struct json_span){s->text + start, s->end - start};
	return true;
}

/* The last member of that name before the object's end, or the fault. */
static bool
span_member(
    struct json_scan *s, const char *name, size_t len, struct json_span *out)
{
	struct json_name found;
	struct json_span value;
	enum json_event first;
	bool is_found = false;

	while (json_scan_next(s) == JSON_EVENT_NAME) {
		found = json_scan_name(s);
		if (!span_next(s, &value, &first))
			break;
		if (!json_name_is(&found, name, len))
			continue;
		*out = value;
		is_found = true;
	}
	return is_found;
}

static bool
span_element(
    struct json_scan *s, const char *index, size_t len, struct json_span *out)
{
	enum json_event first;
	size_t i, n = 0;

	if (len == 0 || len > 9)
		return false;
	for (i = 0; i < len; i++) {
		if (index[i] < '0' || index[i] > '9')
			return false;
		n = n * 10 + (size_t)(index[i] - '0');
	}
	for (i = 0; span_next(s, out, &first); i++)
		if (i == n)
			return true;
	return false;
}

int
json_span(
    const char *bytes, size_t len, const char *path, struct json_span *out)
{
	struct json_span at = {bytes, len};
	struct json_scan s;
	enum json_event got;
	size_t n;
	bool is_found;

	for (;; path += n) {
		json_scan_init(&s, at.bytes, at.len, JSON_DEPTH_MOST, SIZE_MAX);
		path += *path == '/';
		if (*path == '\0')
			break;
		n = strcspn(path, "/");
		got = json_scan_next(&s);
		if (got == JSON_EVENT_OBJECT)
			is_found = span_member(&s, path, n, &at);
		else
			is_found = got == JSON_EVENT_ARRAY &&
			    span_element(&s, path, n, &at);
		if (!is_found)
			return -1;
	}
	return span_next(&s, out, &got) ? 0 : -1;
}

bool
json_span_next(
    const struct json_span *array, size_t *at, struct json_span *element)
{
	struct json_scan s;
	enum json_event first;

	if (*at > array->len)
		return false;
	json_scan_init(&s, array->bytes + *at, array->len - *at,
	    JSON_DEPTH_MOST, SIZE_MAX);
	/* Behind an element the scanner is told that it is in an array. */
	if (*at == 0) {
		if (json_scan_next(&s) != JSON_EVENT_ARRAY)
			return false;
	} else {
		s.in_object[s.depth++] = false;
		s.state = JSON_STATE_AFTER;
	}
	if (!span_next(&s, element, &first))
		return false;
	*at += s.end;
	return true;
}
