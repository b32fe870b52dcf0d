/*
 * The statements of ledger.db: listed in statements.def, prepared when the
 * file is opened, run by name. Values are bound in order.
 */
#ifndef LEDGER_STATEMENTS_H
#define LEDGER_STATEMENTS_H

#include <sqlite3.h>
#include <stdint.h>
#include <string.h>

#include "common/error.h"
#include "common/protocol.h"

enum stmt {
#define STATEMENT(NAME, sql) STMT_##NAME,
#include "ledger/statements.def"
#undef STATEMENT
	STMT_COUNT
};

struct ledger;

/* What a parameter is bound to; borrowed until the statement is reset. */
struct value {
	enum { VALUE_NULL, VALUE_INT, VALUE_TEXT, VALUE_BLOB } kind;
	int64_t number;
	const void *bytes;
	size_t len;
};

static inline struct value
v_int(int64_t n)
{
	return (struct value){.kind = VALUE_INT, .number = n};
}

static inline struct value
v_text(const char *text)
{
	return (struct value){
	    .kind = VALUE_TEXT, .bytes = text, .len = strlen(text)};
}

/* NULL when it is "". */
static inline struct value
v_text_or_null(const char *text)
{
	struct value v = v_text(text);

	v.kind = v.len == 0 ? VALUE_NULL : VALUE_TEXT;
	return v;
}

/* NULL when it is not there. */
static inline struct value
v_opt(struct opt o)
{
	return (struct value){
	    .kind = o.has ? VALUE_INT : VALUE_NULL, .number = o.value};
}

/* NULL when it is empty. */
static inline struct value
v_blob(struct blob b)
{
	return (struct value){.kind = b.len == 0 ? VALUE_NULL : VALUE_BLOB,
	    .bytes = b.bytes,
	    .len = b.len};
}

/* Text without a NUL at its end. */
static inline struct value
v_text_of(struct blob b)
{
	return (struct value){.kind = VALUE_TEXT,
	    .bytes = b.len == 0 ? "" : b.bytes,
	    .len = b.len};
}

/* The values of a statement, as two arguments. */
#define WITH(...)                            \
	(const struct value[]){__VA_ARGS__}, \
	    sizeof((const struct value[]){__VA_ARGS__}) / sizeof(struct value)
#define WITH_NOTHING NULL, 0

/* Prepare them all, or say which one fails. */
int sql_prepare(struct ledger *l, struct error *e);
void sql_finalize(struct ledger *l);

/*
 * Run a statement to its end. Returns how many rows it changed itself (those
 * of triggers do not count), or -1 with l->rc and l->error set.
 */
int sql_run(
    struct ledger *l, enum stmt id, const struct value *values, size_t count);
/*
 * CHANGE a row, or BEGIN it where nothing was changed, with the same values.
 * A row that is there and needs no change is left as it is by its table's
 * *_begin_* trigger (schema.sql). Returns what sql_run() does.
 */
int sql_change_or_begin(struct ledger *l, enum stmt change, enum stmt begin,
    const struct value *values, size_t count);
/*
 * Begin a query and go on with it: 1 a row, 0 no more, -1 as above. The row is
 * read from sql_row() and is good until the statement is used again.
 */
int sql_first(
    struct ledger *l, enum stmt id, const struct value *values, size_t count);
int sql_next(struct ledger *l, enum stmt id);
sqlite3_stmt *sql_row(struct ledger *l, enum stmt id);

/* Columns; text is never NULL. */
int64_t row_int(sqlite3_stmt *row, int column);
const char *row_text(sqlite3_stmt *row, int column);
struct opt row_opt(sqlite3_stmt *row, int column);
struct blob row_blob(sqlite3_stmt *row, int column);

/* The first column of a query's only row; 0 when there is none. */
int sql_number(struct ledger *l, enum stmt id, const struct value *values,
    size_t count, int64_t *out);

/* The first column of every row: *COUNT ids, which the caller frees. -1. */
int sql_ids(struct ledger *l, enum stmt id, const struct value *values,
    size_t count, int64_t **ids, size_t *id_count);

/* End every statement that ran; no handler leaves one open. */
void sql_reset_all(struct ledger *l);

/* The text of a statement, for the test that reads them all. */
const char *sql_text(enum stmt id);
const char *sql_name(enum stmt id);

#endif
