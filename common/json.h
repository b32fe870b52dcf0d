/*
 * JSON from outside: one small scanner, then jansson.
 *
 * The scanner decides what is accepted and says where and why it is not;
 * jansson only builds the tree. Whatever the rules, these are refused: bytes
 * that are not UTF-8, a byte order mark, anything but white space after the
 * value, NUL (raw or escaped) in a member name, a real beyond the range of a
 * double. A \u0000 in a value is kept: strings have a length. A surrogate
 * escape without its partner reads as U+FFFD. Integers are int64, exactly.
 *
 * Errors name line, column (in bytes, both from 1) and reason, never bytes
 * of the text; json_check_keys() alone names keys. error.code tells apart
 *	EILSEQ	not UTF-8, or a byte order mark
 *	EINVAL	not JSON, or not the kind of value that was asked for
 *	E2BIG	too long, too deep, too many members
 *	EEXIST	a member name that its object has already
 *	ERANGE	a number out of range, or a NUL in a member name
 *	ENOENT	a member that is not there
 *
 * jansson's hash seed is the caller's to set before the walls go up.
 */
#ifndef COMMON_JSON_H
#define COMMON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/buffer.h"
#include "common/error.h"

#define JSON_DEPTH_MOST 128

/* Of two members of one name the last counts (MCP); else EEXIST. */
#define JSON_RULE_LAST_WINS 0x1u
/* An integer beyond int64 becomes a real (MCP); else ERANGE. */
#define JSON_RULE_BIG_AS_REAL 0x2u
/* A lone surrogate escape is EINVAL anywhere, instead of U+FFFD. */
#define JSON_RULE_NO_SURROGATES 0x4u
/* A member name that holds U+FFFD, however written, is EINVAL. */
#define JSON_RULE_NO_FFFD_NAMES 0x8u

struct json_rules {
	size_t max_bytes;
	unsigned max_depth; /* nested arrays and objects, <= DEPTH_MOST */
	size_t max_members; /* members and elements of the whole text */
	unsigned flags;     /* JSON_RULE_* */
	/*
	 * Inside the value of a member of this name the last of two members
	 * counts and any name may stand (the feed's `details`); or NULL.
	 */
	const char *exempt;
};

/* A piece of somebody else's text. */
struct json_span {
	const char *bytes;
	size_t len;
};

/* Returns a new reference, or NULL with E set. */
json_t *json_read(const char *bytes, size_t len, const struct json_rules *rules,
    struct error *e);

/*
 * The same judgement without a tree, for a text that is then read piece by
 * piece; only a real beyond the range of a double is let through. Returns 0,
 * or -1 with E set.
 */
int json_check(const char *bytes, size_t len, const struct json_rules *rules,
    struct error *e);

/*
 * Find the raw bytes of one value: PATH is member names and array indices
 * (decimal, from 0) parted by '/', "" for the whole value. Names are compared
 * as decoded; of two members of one name the last one is meant. Returns 0, or
 * -1 if there is none. Of a text that json_read() refused, what stands
 * before the fault is looked at: that is how an answer to an oversized
 * request finds its id.
 */
int json_span(
    const char *bytes, size_t len, const char *path, struct json_span *out);

/*
 * Step through an array's elements, in time linear to its length: *AT is 0
 * at first. Returns false after the last one (or if ARRAY is no array).
 */
bool json_span_next(
    const struct json_span *array, size_t *at, struct json_span *element);

/*
 * The key walk of connect.json (admission.md 5.3 step 1), at any depth: no
 * object repeats a key, and every key is canonical, that is, an int64 in its
 * one canonical spelling, or [a-z0-9_]+. In the objects at FREE_PATHS (as
 * for json_span(); NULL-terminated, or NULL for none) and inside them any
 * key may stand, still once. The error names key path and line. The text
 * itself is judged by json_read() under the caller's rules, before.
 */
int json_check_keys(const char *bytes, size_t len,
    const char *const *free_paths, struct error *e);

/*
 * Members of an object. The error names the member. Where it need not be
 * there, *OUT stays as the caller set it and 0 is returned.
 */
enum json_need {
	JSON_REQUIRED,      /* absent or null is ENOENT */
	JSON_MAY_BE_ABSENT, /* null is EINVAL */
	JSON_MAY_BE_NULL,   /* absent and null are the same */
};

struct json_text {
	const char *bytes; /* borrowed from the tree; NUL after LEN */
	size_t len;
	bool has_nul; /* strlen(bytes) != len */
};

/* An integer >= 1; a real is none, even if whole. */
int json_member_id(const json_t *object, const char *name, enum json_need need,
    int64_t *out, struct error *e);
int json_member_int(const json_t *object, const char *name, enum json_need need,
    int64_t *out, struct error *e);
int json_member_bool(const json_t *object, const char *name,
    enum json_need need, bool *out, struct error *e);
int json_member_string(const json_t *object, const char *name,
    enum json_need need, struct json_text *out, struct error *e);
/* *OUT is borrowed from OBJECT. */
int json_member_object(const json_t *object, const char *name,
    enum json_need need, json_t **out, struct error *e);
int json_member_array(const json_t *object, const char *name,
    enum json_need need, json_t **out, struct error *e);

/*
 * An id as a worker may write it (ledger.md 6.1): a whole number within
 * +-(2^53-1), or a string of decimal digits within int64; above 0. Nothing
 * is rounded. NAME is what the error calls it.
 */
int json_id_argument(
    const json_t *value, const char *name, int64_t *out, struct error *e);

/*
 * Append TEXT as a JSON string with its quotes. Control characters (C0, DEL,
 * C1) and U+2028/2029 are escaped, what is not UTF-8 becomes U+FFFD.
 */
void json_write_string(struct buffer *b, const char *text, size_t len);

#endif
