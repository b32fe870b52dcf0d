/*
 * The scanner behind common/json: JSON text as a row of events, checked as it
 * goes (RFC 8259, UTF-8, depth, count of members). It allocates nothing and
 * keeps no text. For the files common/json*.c, and for those of the bridge,
 * which may not know jansson.
 */
#ifndef COMMON_JSON_SCAN_H
#define COMMON_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/json.h"

enum json_event {
	JSON_EVENT_OBJECT, /* { */
	JSON_EVENT_ARRAY,  /* [ */
	JSON_EVENT_CLOSE,  /* } or ] */
	JSON_EVENT_NAME,   /* a member's name */
	JSON_EVENT_STRING,
	JSON_EVENT_NUMBER,
	JSON_EVENT_WORD,  /* true, false, null */
	JSON_EVENT_END,   /* nothing but white space was left */
	JSON_EVENT_FAULT, /* json_scan_error() says what */
};

/* What comes next in the text. */
enum json_state {
	JSON_STATE_VALUE,
	JSON_STATE_FIRST_NAME,    /* or } */
	JSON_STATE_FIRST_ELEMENT, /* or ] */
	JSON_STATE_AFTER,         /* a comma, a closing bracket or the end */
	JSON_STATE_FAULT,
	JSON_STATE_COUNT
};

struct json_scan {
	const char *text;
	size_t len;
	unsigned max_depth;
	size_t max_members;

	/* Of the last event. */
	size_t start; /* its bytes, a string's quotes included */
	size_t end;
	unsigned depth;  /* arrays and objects open after it */
	bool lone;       /* a string with half a surrogate pair */
	bool fffd;       /* a string that reads as having U+FFFD */
	bool is_integer; /* a number without fraction and exponent */

	/* The scanner's own. */
	enum json_state state;
	size_t at;
	size_t members;
	bool in_object[JSON_DEPTH_MOST];
	int fault; /* error.code */
	const char *why;
};

void json_scan_init(struct json_scan *s, const char *text, size_t len,
    unsigned max_depth, size_t max_members);
enum json_event json_scan_next(struct json_scan *s);
/* Step over the rest of the value whose first event was just returned. */
bool json_scan_skip(struct json_scan *s, enum json_event first);

/* Set E to code, line and column of offset AT, and WHY. Returns -1. */
int json_scan_error(const struct json_scan *s, struct error *e, int code,
    size_t at, const char *why);
/* The same for the fault that ended the scan. */
int json_scan_fault(const struct json_scan *s, struct error *e);
/* The line of an offset, from 1. */
size_t json_scan_line(const struct json_scan *s, size_t at);

/* One character of a string's inside, as it stands or escaped. */
struct json_char {
	uint32_t cp; /* U+FFFD for half a surrogate pair */
	bool lone;
};

/* Returns the bytes it takes, 0 when what stands there is malformed. */
size_t json_char_next(const char *text, size_t len, struct json_char *c);

/* A member's name in the text, without its quotes. */
struct json_name {
	const char *bytes;
	size_t len;
};

/* As decoded: <0, 0, >0. */
int json_name_compare(const struct json_name *a, const struct json_name *b);
bool json_name_is(const struct json_name *a, const char *plain, size_t len);
struct json_name json_scan_name(const struct json_scan *s);

/* The names of the objects that are open, to find one that is repeated. */
struct json_names {
	struct json_name *list;
	size_t count;
	size_t size;
	size_t first[JSON_DEPTH_MOST + 1]; /* by depth: of that object */
};

void json_names_open(struct json_names *n, unsigned depth);
void json_names_add(struct json_names *n, struct json_name name);
/*
 * Leave the object at DEPTH. Returns the first name in the text that it had
 * already, or NULL; the pointer is good until the next call.
 */
const struct json_name *json_names_close(struct json_names *n, unsigned depth);
void json_names_free(struct json_names *n);

#endif
