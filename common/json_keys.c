#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/json_scan.h"
#include "common/text.h"
#include "common/utf8.h"

#define SHOWN_MAX 200

/* Where in the text the walk is: at each depth a member or an element. */
struct walk {
	struct json_scan scan;
	struct json_names names;
	const char *const *free_paths;
	struct json_name name[JSON_DEPTH_MOST + 1];
	size_t index[JSON_DEPTH_MOST + 1];
	bool is_free[JSON_DEPTH_MOST + 1];
	struct error *error;
};

static void
add_name(struct buffer *b, const struct json_name *name)
{
	struct json_char c;
	char utf8[4];
	size_t i;

	for (i = 0; i < name->len;) {
		i += json_char_next(name->bytes + i, name->len - i, &c);
		buffer_add(b, utf8, utf8_put(c.cp, utf8));
	}
}

/* The way to the value at DEPTH containers, parts joined by '/'. */
static char *
walk_path(const struct walk *w, unsigned depth)
{
	struct buffer b = {0};
	unsigned d;

	for (d = 1; d <= depth; d++) {
		if (d > 1)
			buffer_add_char(&b, '/');
		if (w->scan.in_object[d - 1])
			add_name(&b, &w->name[d]);
		else
			buffer_printf(&b, "%zu", w->index[d]);
	}
	return buffer_take(&b, NULL);
}

/* Name the key that was last noted at DEPTH. */
static int
walk_error(struct walk *w, unsigned depth, size_t at, int code, const char *why)
{
	char *path = walk_path(w, depth), *shown;
	size_t len;

	shown = text_single_line(path, strlen(path), &len);
	shown[utf8_cut(shown, len, SHOWN_MAX)] = '\0';
	(void)error_set(w->error, "line %zu: key \"%s\" %s",
	    json_scan_line(&w->scan, at), shown, why);
	if (w->error != NULL)
		w->error->code = code;
	free(shown);
	free(path);
	return -1;
}

/* An int64 in its one spelling: no plus, no leading zero, no minus zero. */
static bool
is_canonical_number(const char *key, size_t len)
{
	if (len != 0 && key[0] == '-') {
		key++;
		len--;
		if (len == 1 && key[0] == '0')
			return false;
	}
	if (len == 0 || (len > 1 && key[0] == '0'))
		return false;
	return strspn(key, "0123456789") == len;
}

static bool
is_canonical(const char *key, size_t len)
{
	if (is_canonical_number(key, len))
		return true;
	if (len == 0 || strspn(key, "0123456789") == len)
		return false;
	return strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_") == len;
}

static bool
name_is_canonical(const struct json_name *name)
{
	struct buffer b = {0};
	char *key;
	bool is;
	size_t len;

	add_name(&b, name);
	key = buffer_take(&b, &len);
	is = is_canonical(key, len);
	free(key);
	return is;
}

static int
walk_name(struct walk *w)
{
	unsigned depth = w->scan.depth;

	w->name[depth] = json_scan_name(&w->scan);
	json_names_add(&w->names, w->name[depth]);
	if (w->is_free[depth] || name_is_canonical(&w->name[depth]))
		return 0;
	return walk_error(w, depth, w->scan.start, EINVAL,
	    "is not in its canonical form ([a-z0-9_], or a plain number)");
}

static bool
is_free_path(const struct walk *w, unsigned depth)
{
	const char *const *p;
	char *path;
	bool is = false;

	if (w->free_paths == NULL)
		return false;
	path = walk_path(w, depth);
	for (p = w->free_paths; *p != NULL && !is; p++)
		is = strcmp(*p, path) == 0;
	free(path);
	return is;
}

/* An element has no name event; its array counts it as it begins. */
static void
walk_value(struct walk *w, unsigned outside)
{
	if (outside > 0 && !w->scan.in_object[outside - 1])
		w->index[outside]++;
}

static void
walk_open(struct walk *w)
{
	unsigned depth = w->scan.depth;

	walk_value(w, depth - 1);
	json_names_open(&w->names, depth);
	w->index[depth] = SIZE_MAX;
	w->is_free[depth] =
	    (depth > 1 && w->is_free[depth - 1]) || is_free_path(w, depth - 1);
}

static int
walk_close(struct walk *w)
{
	unsigned depth = w->scan.depth + 1;
	const struct json_name *twice;

	twice = json_names_close(&w->names, depth);
	if (twice == NULL)
		return 0;
	w->name[depth] = *twice;
	return walk_error(w, depth, (size_t)(twice->bytes - w->scan.text),
	    EEXIST, "is there twice");
}

static int
walk_event(struct walk *w, enum json_event got)
{
	switch (got) {
	case JSON_EVENT_OBJECT:
	case JSON_EVENT_ARRAY:
		walk_open(w);
		return 0;
	case JSON_EVENT_CLOSE:
		return walk_close(w);
	case JSON_EVENT_NAME:
		return walk_name(w);
	case JSON_EVENT_FAULT:
		return json_scan_fault(&w->scan, w->error);
	default:
		walk_value(w, w->scan.depth);
		return 0;
	}
}

int
json_check_keys(const char *bytes, size_t len, const char *const *free_paths,
    struct error *e)
{
	struct walk w = {.free_paths = free_paths, .error = e};
	enum json_event got;
	int result = 0;

	json_scan_init(&w.scan, bytes, len, JSON_DEPTH_MOST, SIZE_MAX);
	do {
		got = json_scan_next(&w.scan);
		result = walk_event(&w, got);
	} while (result == 0 && got != JSON_EVENT_END);
	json_names_free(&w.names);
	return result;
}
