#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/buffer.h"
#include "common/duration.h"
#include "common/json.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/document.h"

#define DEPTH_MAX 16
#define MEMBERS_MAX 100000

/* "a/b/c" for common/json, "a.b.c" for people. */
static void
place_write(struct buffer *b, const struct place *at, char between)
{
	if (at == NULL)
		return;
	if (at->in != NULL) {
		place_write(b, at->in, between);
		buffer_add_char(b, between);
	}
	buffer_add_text(b, at->name);
}

/* The line on which the value at AT begins, or that of what it is in. */
static size_t
place_line(const struct document *d, const struct place *at)
{
	struct buffer path = {0};
	struct json_span span;
	const char *p;
	size_t line = 1;
	int found;

	place_write(&path, at, '/');
	buffer_add(&path, "", 0);
	found = json_span(d->bytes, d->len, path.bytes, &span);
	buffer_free(&path);
	if (found == -1)
		return at == NULL ? 1 : place_line(d, at->in);
	for (p = d->bytes; p < span.bytes; p++)
		line += *p == '\n';
	return line;
}

int
document_refuse(
    const struct document *d, const struct place *at, const char *fmt, ...)
{
	struct buffer name = {0};
	char text[ERROR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	place_write(&name, at, '.');
	(void)error_set(d->e, "%s: line %zu: %s%s%s", log_safe(d->file),
	    place_line(d, at), name.len == 0 ? "" : log_safe(name.bytes),
	    name.len == 0 ? "" : ": ", text);
	buffer_free(&name);
	return -1;
}

json_t *
document_parse(const struct document *d, const char *const *free_paths)
{
	static const struct json_rules rules = {.max_bytes = DOCUMENT_MAX,
	    .max_depth = DEPTH_MAX,
	    .max_members = MEMBERS_MAX,
	    .flags = JSON_RULE_NO_SURROGATES};
	struct error why;
	json_t *root;

	if (json_check_keys(d->bytes, d->len, free_paths, &why) == -1 ||
	    (root = json_read(d->bytes, d->len, &rules, &why)) == NULL) {
		(void)error_set(d->e, "%s: %s", log_safe(d->file), why.text);
		return NULL;
	}
	if (!json_is_object(root)) {
		(void)document_refuse(d, NULL, "not an object");
		json_decref(root);
		return NULL;
	}
	return root;
}

static bool
key_is_known(const struct document_key *keys, size_t count, const char *name)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (strcmp(keys[i].name, name) == 0)
			return true;
	}
	return false;
}

static int
refuse_unknown(const struct document *d, const struct place *at,
    const json_t *object, const struct document_key *keys, size_t count)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)object, name, value) {
		struct place member = {at, name};

		if (!key_is_known(keys, count, name))
			return document_refuse(d, &member, "unknown key");
	}
	return 0;
}

int
document_object(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *keys, size_t count,
    void *target)
{
	const json_t *member;
	size_t i;

	if (!json_is_object(value))
		return document_refuse(d, at, "not an object");
	if (refuse_unknown(d, at, value, keys, count) == -1)
		return -1;
	for (i = 0; i < count; i++) {
		struct place place = {at, keys[i].name};

		member = json_object_get(value, keys[i].name);
		if (member == NULL && !keys[i].is_required)
			continue;
		if (member == NULL)
			return document_refuse(d, &place, "missing");
		if (keys[i].read(d, &place, member, &keys[i], target) == -1)
			return -1;
	}
	return 0;
}

static void *
target_of(const struct document_key *key, void *target)
{
	return (char *)target + key->offset;
}

int
document_int(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	int64_t number;

	if (!json_is_integer(value))
		return document_refuse(d, at, "not a whole number");
	number = json_integer_value(value);
	if (number >= key->least && number <= key->most) {
		*(int64_t *)target_of(key, target) = number;
		return 0;
	}
	if (key->most == INT64_MAX)
		return document_refuse(
		    d, at, "must be at least %lld", (long long)key->least);
	if (key->least == key->most)
		return document_refuse(
		    d, at, "must be %lld", (long long)key->least);
	return document_refuse(d, at, "must be from %lld to %lld",
	    (long long)key->least, (long long)key->most);
}

int
document_bool(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	if (!json_is_boolean(value))
		return document_refuse(d, at, "neither true nor false");
	*(bool *)target_of(key, target) = json_is_true(value);
	return 0;
}

int
document_text(const struct document *d, const struct place *at,
    const json_t *value, size_t least, size_t most, const char **out)
{
	size_t len;

	if (!json_is_string(value))
		return document_refuse(d, at, "not a string");
	len = json_string_length(value);
	if (len == 0 && least > 0)
		return document_refuse(d, at, "empty");
	if (len < least || len > most)
		return document_refuse(
		    d, at, "must have %zu to %zu bytes", least, most);
	*out = json_string_value(value);
	if (strlen(*out) != len)
		return document_refuse(d, at, "has a NUL in it");
	return 0;
}

int
document_string(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	const char *text;

	if (document_text(d, at, value, (size_t)key->least, (size_t)key->most,
		&text) == -1)
		return -1;
	*(char **)target_of(key, target) = xstrdup(text);
	return 0;
}

int
document_duration(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	const char *text;
	struct error why;
	int64_t ms;

	if (!json_is_string(value))
		return document_refuse(
		    d, at, "not a duration in quotes, as \"1m30s\"");
	if (document_text(d, at, value, 1, 64, &text) == -1)
		return -1;
	if (duration_parse_ms(text, key->least, key->most, &ms, &why) == -1)
		return document_refuse(d, at, "%s", why.text);
	*(int64_t *)target_of(key, target) = ms;
	return 0;
}

int
document_members(const struct document *d, const struct place *at,
    const json_t *value,
    int (*each)(const struct document *d, const struct place *at,
	const json_t *member, void *target),
    void *target)
{
	const char *name;
	json_t *member;

	if (!json_is_object(value))
		return document_refuse(d, at, "not an object");
	json_object_foreach ((json_t *)value, name, member) {
		struct place place = {at, name};

		if (each(d, &place, member, target) == -1)
			return -1;
	}
	return 0;
}

int
document_array(const struct document *d, const struct place *at,
    const json_t *value,
    int (*each)(const struct document *d, const struct place *at,
	const json_t *element, void *target),
    void *target)
{
	char digits[24];
	size_t i;

	if (!json_is_array(value))
		return document_refuse(d, at, "not a list");
	for (i = 0; i < json_array_size(value); i++) {
		struct place place = {at, digits};

		(void)snprintf(digits, sizeof(digits), "%zu", i);
		if (each(d, &place, json_array_get(value, i), target) == -1)
			return -1;
	}
	return 0;
}
