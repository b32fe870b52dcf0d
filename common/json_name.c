#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_scan.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

size_t
json_scan_line(const struct json_scan *s, size_t at)
{
	size_t i, line = 1;

	for (i = 0; i < at && i < s->len; i++)
		line += s->text[i] == '\n';
	return line;
}

int
json_scan_error(const struct json_scan *s, struct error *e, int code, size_t at,
    const char *why)
{
	size_t column;

	for (column = 1; column <= at; column++)
		if (s->text[at - column] == '\n')
			break;
	(void)error_set(
	    e, "line %zu, column %zu: %s", json_scan_line(s, at), column, why);
	if (e != NULL)
		e->code = code;
	return -1;
}

int
json_scan_fault(const struct json_scan *s, struct error *e)
{
	return json_scan_error(s, e, s->fault, s->start, s->why);
}

struct json_name
json_scan_name(const struct json_scan *s)
{
	return (struct json_name){
	    .bytes = s->text + s->start + 1,
	    .len = s->end - s->start - 2,
	};
}

int
json_name_compare(const struct json_name *a, const struct json_name *b)
{
	struct json_char x, y;
	size_t i = 0, j = 0;

	while (i < a->len && j < b->len) {
		i += json_char_next(a->bytes + i, a->len - i, &x);
		j += json_char_next(b->bytes + j, b->len - j, &y);
		if (x.cp != y.cp)
			return x.cp < y.cp ? -1 : 1;
	}
	return (i < a->len) - (j < b->len);
}

bool
json_name_is(const struct json_name *a, const char *plain, size_t len)
{
	struct json_char c;
	size_t i, n;
	char utf8[4];

	for (i = 0; i < a->len; plain += n, len -= n) {
		i += json_char_next(a->bytes + i, a->len - i, &c);
		n = utf8_put(c.cp, utf8);
		if (n > len || memcmp(utf8, plain, n) != 0)
			return false;
	}
	return len == 0;
}

void
json_names_open(struct json_names *n, unsigned depth)
{
	n->first[depth] = n->count;
}

void
json_names_add(struct json_names *n, struct json_name name)
{
	if (n->count == n->size) {
		n->size = n->size == 0 ? 32 : n->size * 2;
		n->list = xreallocarray(n->list, n->size, sizeof(*n->list));
	}
	n->list[n->count++] = name;
}

/* By name, then by place in the text. */
static int
names_order(const void *x, const void *y)
{
	const struct json_name *a = x, *b = y;
	int order = json_name_compare(a, b);

	if (order != 0)
		return order;
	return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

const struct json_name *
json_names_close(struct json_names *n, unsigned depth)
{
	struct json_name *list, *found = NULL;
	size_t i, count = n->count - n->first[depth];

	n->count = n->first[depth];
	if (count < 2)
		return NULL;
	list = n->list + n->first[depth];
	qsort(list, count, sizeof(*list), names_order);
	for (i = 1; i < count; i++) {
		if (json_name_compare(&list[i - 1], &list[i]) != 0)
			continue;
		if (found == NULL || list[i].bytes < found->bytes)
			found = &list[i];
	}
	return found;
}

void
json_names_free(struct json_names *n)
{
	free(n->list);
	*n = (struct json_names){0};
}
