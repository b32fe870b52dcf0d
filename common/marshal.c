#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/log.h"
#include "common/marshal.h"

struct reader {
	const uint8_t *at;
	size_t left;
	json_t *symbols; /* in the order of their first use */
	unsigned depth;
	unsigned max_depth;
};

static json_t *read_value(struct reader *r);

static bool
read_byte(struct reader *r, uint8_t *byte)
{
	if (r->left == 0)
		return false;
	*byte = *r->at++;
	r->left--;
	return true;
}

/* C or -C bytes of a number, the least first; absent ones are the sign. */
static bool
read_wide(struct reader *r, int c, int64_t *out)
{
	int i, n = c < 0 ? -c : c;
	uint64_t value = 0;
	uint8_t byte;

	for (i = 0; i < n; i++) {
		if (!read_byte(r, &byte))
			return false;
		value |= (uint64_t)byte << (8 * i);
	}
	*out = (int64_t)value;
	if (c < 0)
		*out -= INT64_C(1) << (8 * n);
	return true;
}

static bool
read_packed(struct reader *r, int64_t *out)
{
	uint8_t byte;
	int c;

	if (!read_byte(r, &byte))
		return false;
	c = (int8_t)byte;
	if (c >= -4 && c <= 4)
		return read_wide(r, c, out);
	*out = c > 0 ? c - 5 : c + 5;
	return true;
}

/* A length or a count: never more than the bytes that are left. */
static bool
read_count(struct reader *r, size_t *out)
{
	int64_t n;

	if (!read_packed(r, &n) || n < 0 || (uint64_t)n > r->left)
		return false;
	*out = (size_t)n;
	return true;
}

static json_t *
made(json_t *value)
{
	if (value == NULL)
		fatalx("out of memory");
	return value;
}

static json_t *
read_nil(struct reader *r)
{
	return json_null();
}

static json_t *
read_true(struct reader *r)
{
	return json_true();
}

static json_t *
read_false(struct reader *r)
{
	return json_false();
}

static json_t *
read_fixnum(struct reader *r)
{
	int64_t n;

	return read_packed(r, &n) ? made(json_integer(n)) : NULL;
}

static json_t *
read_string(struct reader *r)
{
	const char *bytes;
	size_t len;

	if (!read_count(r, &len))
		return NULL;
	bytes = (const char *)r->at;
	r->at += len;
	r->left -= len;
	return made(json_stringn_nocheck(bytes, len));
}

static json_t *
read_symbol(struct reader *r)
{
	json_t *symbol = read_string(r);

	if (symbol != NULL && json_array_append(r->symbols, symbol) == -1)
		fatalx("out of memory");
	return symbol;
}

static json_t *
read_symbol_link(struct reader *r)
{
	int64_t n;

	if (!read_packed(r, &n) || n < 0)
		return NULL;
	return json_incref(json_array_get(r->symbols, (size_t)n));
}

static json_t *
read_array(struct reader *r)
{
	json_t *array, *element;
	size_t n;

	if (!read_count(r, &n))
		return NULL;
	array = made(json_array());
	for (; n > 0; n--) {
		element = read_value(r);
		if (element == NULL) {
			json_decref(array);
			return NULL;
		}
		if (json_array_append_new(array, element) == -1)
			fatalx("out of memory");
	}
	return array;
}

/* One pair into HASH. */
static bool
read_pair(struct reader *r, json_t *hash)
{
	json_t *key, *value = NULL;

	key = read_value(r);
	if (json_is_string(key))
		value = read_value(r);
	if (value != NULL &&
	    json_object_setn_new_nocheck(hash, json_string_value(key),
		json_string_length(key), value) == -1)
		fatalx("out of memory");
	json_decref(key);
	return value != NULL;
}

static json_t *
read_hash(struct reader *r)
{
	json_t *hash;
	size_t n;

	if (!read_count(r, &n))
		return NULL;
	hash = made(json_object());
	for (; n > 0; n--)
		if (!read_pair(r, hash)) {
			json_decref(hash);
			return NULL;
		}
	return hash;
}

/* A value, then what else is known of it (a string's encoding): dropped. */
static json_t *
read_ivars(struct reader *r)
{
	json_t *value = read_value(r), *dropped;
	size_t n = 0;

	if (value == NULL)
		return NULL;
	if (!read_count(r, &n) || n > r->left / 2) {
		json_decref(value);
		return NULL;
	}
	for (n *= 2; n > 0; n--) {
		dropped = read_value(r);
		json_decref(dropped);
		if (dropped == NULL) {
			json_decref(value);
			return NULL;
		}
	}
	return value;
}

static json_t *(*const types[UINT8_MAX + 1])(struct reader *) = {
    ['0'] = read_nil,
    ['T'] = read_true,
    ['F'] = read_false,
    ['i'] = read_fixnum,
    ['"'] = read_string,
    [':'] = read_symbol,
    [';'] = read_symbol_link,
    ['I'] = read_ivars,
    ['['] = read_array,
    ['{'] = read_hash,
};

static json_t *
read_value(struct reader *r)
{
	json_t *value;
	uint8_t type;

	if (r->depth >= r->max_depth || !read_byte(r, &type) ||
	    types[type] == NULL)
		return NULL;
	r->depth++;
	value = types[type](r);
	r->depth--;
	return value;
}

json_t *
marshal_read(const void *bytes, size_t len, unsigned max_depth)
{
	static const uint8_t version[] = {4, 8};
	struct reader r = {.max_depth = max_depth};
	json_t *value;

	if (len < sizeof(version) ||
	    memcmp(bytes, version, sizeof(version)) != 0)
		return NULL;
	r.at = (const uint8_t *)bytes + sizeof(version);
	r.left = len - sizeof(version);
	r.symbols = made(json_array());
	value = read_value(&r);
	json_decref(r.symbols);
	if (value != NULL && r.left != 0) {
		json_decref(value);
		return NULL;
	}
	return value;
}
