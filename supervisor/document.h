/*
 * A JSON file that an operator wrote, read strictly (admission.md 5.3): a
 * table names every key an object may have, and what is wrong is said with
 * file, line and the way of keys to it.
 */
#ifndef SUPERVISOR_DOCUMENT_H
#define SUPERVISOR_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/error.h"

#define DOCUMENT_MAX (1024 * 1024)

struct document {
	const char *file; /* as errors name it */
	const char *bytes;
	size_t len;
	struct error *e;
};

/* Where in a document: a chain on the stack, from a member up to the top. */
struct place {
	const struct place *in; /* NULL: a member of the document itself */
	const char *name;       /* a key, or an index in digits */
};

/* One key of an object; a row of a static table. */
struct document_key {
	const char *name;
	bool is_required;
	/* Take VALUE to what KEY names in TARGET; -1 and the error set. */
	int (*read)(const struct document *d, const struct place *at,
	    const json_t *value, const struct document_key *key, void *target);
	size_t offset;       /* in TARGET */
	int64_t least, most; /* of the number, or of the string's bytes */
};

/*
 * Judge the whole text and parse it. FREE_PATHS as for json_check_keys().
 * NULL with the error set; else a new reference, an object.
 */
json_t *document_parse(const struct document *d, const char *const *free_paths);

/* Set the error to "FILE: line N: a.b.c: text". Always -1. */
int document_refuse(const struct document *d, const struct place *at,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * Read the members of VALUE by KEYS in their order; a key that is not among
 * them is refused. What is absent and not required stays as TARGET has it.
 * AT is NULL for the document itself.
 */
int document_object(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *keys, size_t count,
    void *target);

/* Readers for tables: int64_t, bool, char * (malloc'ed), duration in ms. */
int document_int(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target);
int document_bool(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target);
int document_string(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target);
int document_duration(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target);

/*
 * A string without NUL bytes and of LEAST to MOST of them; *OUT is borrowed
 * from VALUE.
 */
int document_text(const struct document *d, const struct place *at,
    const json_t *value, size_t least, size_t most, const char **out);
/* Call EACH for every member of the object VALUE; its name is its place's. */
int document_members(const struct document *d, const struct place *at,
    const json_t *value,
    int (*each)(const struct document *d, const struct place *at,
	const json_t *member, void *target),
    void *target);
/* Call EACH for every element of the array VALUE, with its place. */
int document_array(const struct document *d, const struct place *at,
    const json_t *value,
    int (*each)(const struct document *d, const struct place *at,
	const json_t *element, void *target),
    void *target);

#endif
