/*
 * Rows of the simulated world: C structs that a table of fields describes,
 * so that reading one from JSON, checking it, showing it and freeing it are
 * written once. Every row struct begins with its int64_t id.
 */
#ifndef SIMULATOR_ROWS_H
#define SIMULATOR_ROWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* A list whose ids are NULL is absent, which is not the same as empty. */
struct id_list {
	int64_t *ids;
	size_t count;
};

bool id_list_has(const struct id_list *list, int64_t id);
/* Adds ID unless it is there. */
void id_list_add(struct id_list *list, int64_t id);

enum row_kind {
	ROW_NUMBER, /* int64_t >= 0; JSON null is 0 */
	ROW_FLAG,   /* bool */
	ROW_TEXT,   /* char *, never NULL in a row made by row_new() */
	ROW_IDS,    /* struct id_list of ids > 0; JSON null makes it absent */
	ROW_JSON,   /* json_t *, NULL when absent */
	ROW_KINDS
};

struct row_field {
	const char *name;
	enum row_kind kind;
	size_t at;
};

struct row_type {
	const char *name;
	size_t size;
	const struct row_field *fields;
	size_t field_count;
	const char *const *others; /* members that the caller reads itself */
};

/* A zeroed row with empty texts; row_free() ends it (NULL is allowed). */
void *row_new(const struct row_type *type);
void row_free(const struct row_type *type, void *row);
/*
 * Check that FROM is an object of known members with the right kinds.
 * Returns 0, or -1 with E naming the member.
 */
int row_check(const struct row_type *type, json_t *from, struct error *e);
/* Set what FROM has, which row_check() has accepted; the rest stays. */
void row_set(const struct row_type *type, void *row, json_t *from);
/* A new object with every field. */
json_t *row_json(const struct row_type *type, const void *row);

/* Rows in ascending order of id. The table owns them. */
struct row_table {
	const struct row_type *type;
	void **rows;
	size_t count;
	size_t capacity;
};

/* NULL when there is none. */
void *row_find(const struct row_table *table, int64_t id);
/* Index of the first row whose id is greater than ID. */
size_t row_after(const struct row_table *table, int64_t id);
/* Puts ROW (taken over) in its place; its id must be new to the table. */
void row_insert(struct row_table *table, void *row);
/* Returns false when there was none. */
bool row_remove(struct row_table *table, int64_t id);
/* The greatest id, 0 when empty. */
int64_t row_last(const struct row_table *table);

#endif
