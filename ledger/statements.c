#include <assert.h>
#include <stdlib.h>

#include "common/xmalloc.h"
#include "ledger/ledger.h"
#include "ledger/statements.h"

static const struct {
	const char *name;
	const char *sql;
} statements[] = {
#define STATEMENT(NAME, sql) {#NAME, sql},
#include "ledger/statements.def"
#undef STATEMENT
};

static_assert(sizeof(statements) / sizeof(statements[0]) == STMT_COUNT,
    "a statement is listed once");

const char *
sql_text(enum stmt id)
{
	return statements[id].sql;
}

const char *
sql_name(enum stmt id)
{
	return statements[id].name;
}

int
sql_prepare(struct ledger *l, struct error *e)
{
	int id;

	for (id = 0; id < STMT_COUNT; id++) {
		if (sqlite3_prepare_v3(l->db, statements[id].sql, -1,
			SQLITE_PREPARE_PERSISTENT, &l->stmts[id],
			NULL) != SQLITE_OK)
			return error_set(e, "statement %s: %s",
			    statements[id].name, sqlite3_errmsg(l->db));
	}
	return 0;
}

void
sql_finalize(struct ledger *l)
{
	int id;

	for (id = 0; id < STMT_COUNT; id++) {
		(void)sqlite3_finalize(l->stmts[id]);
		l->stmts[id] = NULL;
	}
}

/* Keep the first failure: what follows it is its consequence. */
static int
sql_fail(struct ledger *l, enum stmt id)
{
	if (l->rc == SQLITE_OK) {
		l->rc = sqlite3_extended_errcode(l->db);
		(void)error_set(&l->error, "%s: %s", statements[id].name,
		    sqlite3_errmsg(l->db));
	}
	return -1;
}

static void
sql_bind_one(sqlite3_stmt *stmt, int at, const struct value *v)
{
	switch (v->kind) {
	case VALUE_INT:
		(void)sqlite3_bind_int64(stmt, at, v->number);
		break;
	case VALUE_TEXT:
		(void)sqlite3_bind_text64(
		    stmt, at, v->bytes, v->len, SQLITE_STATIC, SQLITE_UTF8);
		break;
	case VALUE_BLOB:
		(void)sqlite3_bind_blob64(
		    stmt, at, v->bytes, v->len, SQLITE_STATIC);
		break;
	case VALUE_NULL:
		break; /* what a cleared parameter is */
	}
}

static sqlite3_stmt *
sql_begin(
    struct ledger *l, enum stmt id, const struct value *values, size_t count)
{
	sqlite3_stmt *stmt = l->stmts[id];
	size_t i;

	assert((int)count == sqlite3_bind_parameter_count(stmt));
	if (!l->is_used[id]) {
		l->is_used[id] = true;
		l->used[l->used_count++] = id;
	} else {
		(void)sqlite3_reset(stmt);
		(void)sqlite3_clear_bindings(stmt);
	}
	for (i = 0; i < count; i++)
		sql_bind_one(stmt, (int)i + 1, &values[i]);
	return stmt;
}

int
sql_run(
    struct ledger *l, enum stmt id, const struct value *values, size_t count)
{
	sqlite3_stmt *stmt = sql_begin(l, id, values, count);

	if (sqlite3_step(stmt) != SQLITE_DONE)
		return sql_fail(l, id);
	return sqlite3_changes(l->db);
}

int
sql_change_or_begin(struct ledger *l, enum stmt change, enum stmt begin,
    const struct value *values, size_t count)
{
	int n = sql_run(l, change, values, count);

	return n != 0 ? n : sql_run(l, begin, values, count);
}

int
sql_first(
    struct ledger *l, enum stmt id, const struct value *values, size_t count)
{
	(void)sql_begin(l, id, values, count);
	return sql_next(l, id);
}

int
sql_next(struct ledger *l, enum stmt id)
{
	switch (sqlite3_step(l->stmts[id])) {
	case SQLITE_ROW:
		return 1;
	case SQLITE_DONE:
		return 0;
	default:
		return sql_fail(l, id);
	}
}

sqlite3_stmt *
sql_row(struct ledger *l, enum stmt id)
{
	return l->stmts[id];
}

int
sql_number(struct ledger *l, enum stmt id, const struct value *values,
    size_t count, int64_t *out)
{
	int rc = sql_first(l, id, values, count);

	if (rc == -1)
		return -1;
	*out = rc == 0 ? 0 : sqlite3_column_int64(l->stmts[id], 0);
	return 0;
}

int
sql_ids(struct ledger *l, enum stmt id, const struct value *values,
    size_t count, int64_t **ids, size_t *id_count)
{
	int rc = sql_first(l, id, values, count);

	*ids = NULL;
	*id_count = 0;
	for (; rc == 1; rc = sql_next(l, id)) {
		*ids = xreallocarray(*ids, *id_count + 1, sizeof(**ids));
		(*ids)[(*id_count)++] = row_int(sql_row(l, id), 0);
	}
	return rc;
}

int64_t
row_int(sqlite3_stmt *row, int column)
{
	return sqlite3_column_int64(row, column);
}

const char *
row_text(sqlite3_stmt *row, int column)
{
	const unsigned char *text = sqlite3_column_text(row, column);

	return text == NULL ? "" : (const char *)text;
}

struct opt
row_opt(sqlite3_stmt *row, int column)
{
	struct opt o = {0};

	o.has = sqlite3_column_type(row, column) != SQLITE_NULL;
	if (o.has)
		o.value = sqlite3_column_int64(row, column);
	return o;
}

struct blob
row_blob(sqlite3_stmt *row, int column)
{
	struct blob b;

	b.bytes = sqlite3_column_blob(row, column);
	b.len = (size_t)sqlite3_column_bytes(row, column);
	return b;
}

void
sql_reset_all(struct ledger *l)
{
	size_t i;

	for (i = 0; i < l->used_count; i++) {
		sqlite3_stmt *stmt = l->stmts[l->used[i]];

		(void)sqlite3_reset(stmt);
		(void)sqlite3_clear_bindings(stmt);
		l->is_used[l->used[i]] = false;
	}
	l->used_count = 0;
}
