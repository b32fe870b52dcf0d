#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/json_scan.h"
#include "common/log.h"

/* One json_read(): the scan, and what jansson is given in the end. */
struct reading {
	struct json_scan scan;
	const struct json_rules *rules;
	struct json_names names;
	unsigned exempt_depth; /* of the object with that member, 0: none */
	struct buffer patched;
	size_t copied; /* the text up to here is in PATCHED */
	struct error *error;
};

static int
refuse(struct reading *r, int code, const char *why)
{
	return json_scan_error(&r->scan, r->error, code, r->scan.start, why);
}

/* Copy the text as far as UPTO. */
static void
copy_text(struct reading *r, size_t upto)
{
	buffer_add(&r->patched, r->scan.text + r->copied, upto - r->copied);
	r->copied = upto;
}

/* Copy a string with every half surrogate pair as the escape of U+FFFD. */
static void
patch_string(struct reading *r)
{
	const struct json_scan *s = &r->scan;
	struct json_char c;
	size_t at, n;

	for (at = s->start + 1; at < s->end - 1; at += n) {
		n = json_char_next(s->text + at, s->end - at, &c);
		if (!c.lone)
			continue;
		copy_text(r, at);
		buffer_add_text(&r->patched, "\\ufffd");
		r->copied = at + n;
	}
}

static int
read_string(struct reading *r)
{
	if (!r->scan.lone)
		return 0;
	if (r->rules->flags & JSON_RULE_NO_SURROGATES)
		return refuse(r, EINVAL, "half a surrogate pair");
	patch_string(r);
	return 0;
}

static bool
is_exempt(const struct reading *r)
{
	return r->exempt_depth != 0 && r->scan.depth > r->exempt_depth;
}

static int
read_name(struct reading *r)
{
	struct json_name name = json_scan_name(&r->scan);

	if (!is_exempt(r)) {
		r->exempt_depth = 0;
		if (r->rules->exempt != NULL &&
		    json_name_is(
			&name, r->rules->exempt, strlen(r->rules->exempt)))
			r->exempt_depth = r->scan.depth;
		if ((r->rules->flags & JSON_RULE_NO_FFFD_NAMES) && r->scan.fffd)
			return refuse(r, EINVAL, "U+FFFD in a member name");
		if (!(r->rules->flags & JSON_RULE_LAST_WINS))
			json_names_add(&r->names, name);
	}
	return read_string(r);
}

static int
read_open(struct reading *r)
{
	json_names_open(&r->names, r->scan.depth);
	return 0;
}

static int
read_close(struct reading *r)
{
	unsigned depth = r->scan.depth + 1;
	const struct json_name *twice;

	if (r->exempt_depth != 0 && depth <= r->exempt_depth)
		r->exempt_depth = 0;
	twice = json_names_close(&r->names, depth);
	if (twice == NULL)
		return 0;
	return json_scan_error(&r->scan, r->error, EEXIST,
	    (size_t)(twice->bytes - r->scan.text) - 1,
	    "a member name that was there before");
}

/* Whether an integer of the text fits, by its digits. */
static bool
fits_int64(const char *digits, size_t len)
{
	char copy[24];

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, digits, len);
	copy[len] = '\0';
	errno = 0;
	(void)strtoll(copy, NULL, 10);
	return errno == 0;
}

static int
read_number(struct reading *r)
{
	const struct json_scan *s = &r->scan;

	if (!s->is_integer || fits_int64(s->text + s->start, s->end - s->start))
		return 0;
	if (!(r->rules->flags & JSON_RULE_BIG_AS_REAL))
		return refuse(r, ERANGE, "an integer beyond 64 bits");
	copy_text(r, s->end);
	buffer_add_text(&r->patched, ".0");
	return 0;
}

static int
read_word(struct reading *r)
{
	return 0;
}

static int (*const readers[])(struct reading *) = {
    [JSON_EVENT_OBJECT] = read_open,
    [JSON_EVENT_ARRAY] = read_open,
    [JSON_EVENT_CLOSE] = read_close,
    [JSON_EVENT_NAME] = read_name,
    [JSON_EVENT_STRING] = read_string,
    [JSON_EVENT_NUMBER] = read_number,
    [JSON_EVENT_WORD] = read_word,
};

/* What the scan let through can fail in jansson for two reasons only. */
static json_t *
build_tree(struct reading *r)
{
	const char *bytes = r->scan.text;
	size_t len = r->scan.len;
	json_error_t why;
	json_t *tree;

	if (r->copied != 0) {
		copy_text(r, len);
		bytes = r->patched.bytes;
		len = r->patched.len;
	}
	tree = json_loadb(bytes, len, JSON_ALLOW_NUL | JSON_DECODE_ANY, &why);
	if (tree != NULL)
		return tree;
	if (json_error_code(&why) == json_error_out_of_memory)
		fatalx("out of memory for %zu bytes of JSON", len);
	(void)error_set(r->error, "line %d: %s", why.line,
	    json_error_code(&why) == json_error_numeric_overflow
		? "a number beyond the range of a double"
		: "not readable");
	if (r->error != NULL)
		r->error->code = ERANGE;
	return NULL;
}

/* Everything that the rules say of the text. */
static int
read_text(struct reading *r, const char *bytes, size_t len)
{
	enum json_event got;

	if (len > r->rules->max_bytes) {
		(void)error_set(
		    r->error, "longer than %zu bytes", r->rules->max_bytes);
		if (r->error != NULL)
			r->error->code = E2BIG;
		return -1;
	}
	json_scan_init(
	    &r->scan, bytes, len, r->rules->max_depth, r->rules->max_members);
	while ((got = json_scan_next(&r->scan)) != JSON_EVENT_END) {
		if (got == JSON_EVENT_FAULT)
			return json_scan_fault(&r->scan, r->error);
		if (readers[got](r) == -1)
			return -1;
	}
	return 0;
}

json_t *
json_read(const char *bytes, size_t len, const struct json_rules *rules,
    struct error *e)
{
	struct reading r = {.rules = rules, .error = e};
	json_t *tree = NULL;

	if (read_text(&r, bytes, len) == 0)
		tree = build_tree(&r);
	json_names_free(&r.names);
	buffer_free(&r.patched);
	return tree;
}

int
json_check(const char *bytes, size_t len, const struct json_rules *rules,
    struct error *e)
{
	struct reading r = {.rules = rules, .error = e};
	int rc = read_text(&r, bytes, len);

	json_names_free(&r.names);
	buffer_free(&r.patched);
	return rc;
}
