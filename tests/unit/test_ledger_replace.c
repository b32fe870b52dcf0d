/*
 * OR REPLACE deletes the rows that stand in its way, and no trigger of theirs
 * is asked. Here it is tried on every unique key that SQLite itself lists of
 * every table: no row may go or change by it (the header of schema.sql).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buffer.h"
#include "ledger/database.h"

#define TEXT_MOST 2048

/* A table that is not here is red. */
static const struct sample {
	const char *table;
	/* Some are there already, put there where no edge leads; */
	const char *rows;
	/* and this one may be born beside them, by every trigger. */
	const char *birth;
	/* What besides a key brings a row among those it is unique of. */
	const char *also;
} samples[] = {
    {"schema_migrations", "(version, applied_at) VALUES (1, 'a'), (2, 'a')",
	"9 AS version, 'b' AS applied_at", NULL},
    {"events",
	"(id, state, lane, event_type, kind, action, bucket_id, creator_id,"
	" recording_id, created_at, seen_at, updated_at)"
	" SELECT value, CASE value WHEN 103 THEN 'admitted' ELSE 'dispatched'"
	" END, 'poll', 'x', 'x', 'x', 1, 1, 1, 'c', 's', 'u'"
	" FROM json_each('[101, 102, 103]')",
	"9 AS id, 'seen' AS state, 'poll' AS lane, 'x' AS event_type,"
	" 'x' AS kind, 'x' AS action, 1 AS bucket_id, 1 AS creator_id,"
	" 1 AS recording_id, 'c' AS created_at, 's' AS seen_at,"
	" 'u' AS updated_at",
	NULL},
    {"checkpoints",
	"(flat_key, lineage, position, updated_at, last_poll_served_id)"
	" VALUES ('k1', 'l', 'p', 'u', 5), ('k2', 'l', 'p', 'u', 0)",
	"'k9' AS flat_key, 'l' AS lineage, 'q' AS position, 'u' AS updated_at",
	NULL},
    {"losses",
	"(id, nonce, detected_at, dropped_count, repair_since, deadline_at)"
	" VALUES (1, 'n1', 'd', 1, 0, 'd'), (2, 'n2', 'd', 1, 0, 'd')",
	"9 AS id, 'n9' AS nonce, 'd' AS detected_at, 1 AS dropped_count,"
	" 0 AS repair_since, 'e' AS deadline_at",
	NULL},
    {"loss_ids",
	"(loss_id, event_id, state) VALUES (1, 101, 'recovered'),"
	" (1, 102, 'missing'), (2, 101, 'missing')",
	"9 AS loss_id, 109 AS event_id, 'missing' AS state", NULL},
    {"gaps",
	"(id, nonce, detected_at, class) VALUES (1, 'n1', 'd', 'retention'),"
	" (2, 'n2', 'd', 'retention')",
	"9 AS id, 'n9' AS nonce, 'd' AS detected_at, 'retention' AS class",
	NULL},
    {"tasks",
	"(id, token_sha256, created_at, conversation_key, work_dir,"
	" superseded_at, ended_at) VALUES (1, 'h1', 'c', 'k1', '/1', NULL,"
	" NULL), (2, 'h2', 'c', 'k2', '/2', NULL, NULL), (3, 'h3', 'c', 'k1',"
	" '/1', 's', 'e'), (4, 'h4', 'c', 'k4', '/4', NULL, NULL)",
	"9 AS id, 'h9' AS token_sha256, 'c' AS created_at,"
	" 'k9' AS conversation_key, '/9' AS work_dir, NULL AS ended_at",
	"ended_at = NULL"},
    {"task_events",
	"(task_id, event_id, conversation_key, retired_at, delivery, guard)"
	" VALUES (1, 101, 'k1', NULL, 'exposed', 'armed'),"
	" (2, 102, 'k2', NULL, 'admitted', 'canceled'),"
	" (3, 101, 'k1', 'r', 'completed', 'fired')",
	"4 AS task_id, 103 AS event_id, 'k4' AS conversation_key,"
	" NULL AS retired_at",
	"retired_at = NULL"},
    {"attempts",
	"(id, task_id, seq, driver, state, stop_reason, launched_at) VALUES"
	" ('a1', 1, 1, 'd', 'ended', 'lost', 'l'),"
	" ('a2', 1, 2, 'd', 'running', '', 'l'),"
	" ('a3', 2, 1, 'd', 'running', '', 'l'),"
	" ('a4', 3, 1, 'd', 'ended', 'lost', 'l')",
	"'a9' AS id, 4 AS task_id, 1 AS seq, 'd' AS driver,"
	" 'launching' AS state, '' AS stop_reason, 'l' AS launched_at",
	"state = 'launching', stop_reason = ''"},
    {"outbox",
	"(id, intent_key, kind, state, bucket_id, message_kind, recording_id,"
	" body, created_at, not_before, nonce, sending_at, receipt_id) VALUES"
	" (1, 'k1', 'completion', 'sent', 1, 'boost', 1, 'b', 'c', 'n', 'n1',"
	" 's', 7), (2, 'k2', 'completion', 'sending', 1, 'boost', 1, 'b', 'c',"
	" 'n', 'n2', 's', NULL), (3, 'k3', 'completion', 'sent', 1, 'comment',"
	" 1, 'b', 'c', 'n', 'n3', 's', 7)",
	"9 AS id, 'k9' AS intent_key, 'completion' AS kind,"
	" 'pending' AS state, 1 AS bucket_id, 'boost' AS message_kind,"
	" 1 AS recording_id, 'b' AS body, 'c' AS created_at,"
	" 'n' AS not_before, 'n9' AS nonce, NULL AS sending_at,"
	" NULL AS receipt_id",
	"state = 'sent', sending_at = 's'"},
    {"renewal_holds",
	"(fingerprint, reason, updated_at) VALUES ('f1', 'r', 'u'),"
	" ('f2', 'r', 'u')",
	"'f9' AS fingerprint, 's' AS reason, 'u' AS updated_at", NULL},
    {"generations",
	"(id, cause, opened_by, opened_at) VALUES (1, 'hold', 'me', 'o'),"
	" (2, 'hold', 'me', 'o')",
	"9 AS id, 'hold' AS cause, 'you' AS opened_by, 'o' AS opened_at", NULL},
    {"hold_marker",
	"(id, generation, cause, held_by, held_at)"
	" VALUES (1, 1, 'hold', 'me', 'h')",
	"1 AS id, 2 AS generation, 'hold' AS cause, 'you' AS held_by,"
	" 'h' AS held_at",
	NULL},
    {"decisions",
	"(id, nonce, action, decided_by, decided_at)"
	" VALUES (1, 'n1', 'hold', 'me', 'd'), (2, 'n2', 'hold', 'me', 'd')",
	"9 AS id, 'n9' AS nonce, 'hold' AS action, 'me' AS decided_by,"
	" 'd' AS decided_at",
	NULL},
    {"connection", "(id, state, pid, changed_at) VALUES (1, 'running', 1, 'c')",
	"1 AS id, 'stopped' AS state, 2 AS pid, 'c' AS changed_at", NULL},
    {"retention", "(id, ran_at, cleared) VALUES (1, 'r', 1)",
	"1 AS id, 's' AS ran_at, 2 AS cleared", NULL},
};
#define SAMPLES (sizeof(samples) / sizeof(samples[0]))

/* ---- a copy of the schema ----------------------------------------------- */

static sqlite3 *db;

static int
run(const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static void
must(const char *sql)
{
	if (run(sql) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

static void
triggers(bool on)
{
	assert_int_equal(SQLITE_OK,
	    sqlite3_db_config(
		db, SQLITE_DBCONFIG_ENABLE_TRIGGER, (int)on, NULL));
}

static sqlite3_stmt *
ask(const char *sql)
{
	sqlite3_stmt *stmt;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	return stmt;
}

static const char *
text_of(sqlite3_stmt *row, int column)
{
	const void *text = sqlite3_column_text(row, column);

	return text == NULL ? "" : text;
}

static int
row_count(const char *table)
{
	char sql[TEXT_MOST];
	sqlite3_stmt *row;
	int n;

	(void)snprintf(sql, sizeof(sql), "SELECT COUNT(*) FROM %s", table);
	row = ask(sql);
	assert_int_equal(SQLITE_ROW, sqlite3_step(row));
	n = sqlite3_column_int(row, 0);
	(void)sqlite3_finalize(row);
	return n;
}

static void
dump_table(struct buffer *b, const char *table)
{
	char sql[TEXT_MOST];
	sqlite3_stmt *row;
	int i;

	(void)snprintf(sql, sizeof(sql), "SELECT * FROM %s", table);
	row = ask(sql);
	while (sqlite3_step(row) == SQLITE_ROW) {
		buffer_printf(b, "%s:", table);
		for (i = 0; i < sqlite3_column_count(row); i++)
			buffer_printf(b, " %s", text_of(row, i));
		buffer_printf(b, "\n");
	}
	(void)sqlite3_finalize(row);
}

/* Every row of every table; the caller's to free. */
static char *
dump(void)
{
	struct buffer b = {0};
	size_t i;

	for (i = 0; i < SAMPLES; i++)
		dump_table(&b, samples[i].table);
	return buffer_take(&b, NULL);
}

/* The rows of all tables; a hold only for itself, since it refuses others. */
static void
open_copy(const struct sample *of)
{
	char sql[TEXT_MOST];
	size_t i;

	assert_int_equal(SQLITE_OK, sqlite3_open(":memory:", &db));
	must(ledger_schema);
	must("PRAGMA foreign_keys = OFF");
	triggers(false);
	for (i = 0; i < SAMPLES; i++) {
		if (strcmp(samples[i].table, "hold_marker") == 0 &&
		    &samples[i] != of)
			continue;
		(void)snprintf(sql, sizeof(sql), "INSERT INTO %s %s",
		    samples[i].table, samples[i].rows);
		must(sql);
	}
	triggers(true);
}

/* ---- its keys ------------------------------------------------------------ */

#define COLUMNS_SIZE 128

/* In which only one row may be, if any is. */
struct key {
	char name[64];
	char columns[COLUMNS_SIZE]; /* "a, b" */
	bool is_hidden;             /* a name that is no column's */
};

/* KEY of row FROM, or of one that is born, comes to be that of row AT. */
struct attack {
	const struct sample *s;
	const struct key *key;
	const char *order; /* the primary key, by which rows are counted */
	int at;
	int from;
	const char *also;
};

/* The first column of a query, ?1 in which is WHAT. */
static void
word_of(const char *sql, const char *what, char *out, size_t size)
{
	sqlite3_stmt *row = ask(sql);

	(void)sqlite3_bind_text(row, 1, what, -1, SQLITE_STATIC);
	assert_int_equal(SQLITE_ROW, sqlite3_step(row));
	assert_true(strlen(text_of(row, 0)) < size);
	(void)snprintf(out, size, "%s", text_of(row, 0));
	(void)sqlite3_finalize(row);
}

/* KEY comes to be that of row AT: what a SET says. */
static void
attack_sets(const struct attack *a, char *out, size_t size)
{
	(void)snprintf(out, size,
	    "(%s) = (SELECT %s FROM main.%s ORDER BY %s LIMIT 1 OFFSET %d)%s%s",
	    a->key->columns, a->key->columns, a->s->table, a->order, a->at,
	    a->also == NULL ? "" : ", ", a->also == NULL ? "" : a->also);
}

static void
attack_update(const struct attack *a, char *out, size_t size)
{
	char sets[512];

	attack_sets(a, sets, sizeof(sets));
	(void)snprintf(out, size,
	    "UPDATE OR REPLACE main.%s SET %s WHERE (%s) = (SELECT %s"
	    " FROM main.%s ORDER BY %s LIMIT 1 OFFSET %d)",
	    a->s->table, sets, a->order, a->order, a->s->table, a->order,
	    a->from);
}

/* What is to be born is a table of its own, with a rowid of its own. */
static void
birth_put(const struct sample *s)
{
	char sql[TEXT_MOST];

	(void)snprintf(sql, sizeof(sql),
	    "DROP TABLE IF EXISTS temp.birth;"
	    "CREATE TEMP TABLE birth AS SELECT %s",
	    s->birth);
	must(sql);
}

static void
birth_insert(const struct attack *a, char *out, size_t size)
{
	char columns[TEXT_MOST / 4], hidden[COLUMNS_SIZE] = "";

	word_of("SELECT group_concat(name, ', ') FROM"
		" pragma_table_info('birth', 'temp') WHERE name <> ?1",
	    a->key->is_hidden ? a->order : "", columns, sizeof(columns));
	if (a->key->is_hidden)
		(void)snprintf(
		    hidden, sizeof(hidden), "%.64s, ", a->key->columns);
	(void)snprintf(out, size,
	    "INSERT OR REPLACE INTO main.%s (%s%s) SELECT %s%s FROM temp.birth",
	    a->s->table, hidden, columns, hidden, columns);
}

static void
attack_insert(const struct attack *a, char *out, size_t size)
{
	char sets[512], sql[TEXT_MOST];

	birth_put(a->s);
	attack_sets(a, sets, sizeof(sets));
	(void)snprintf(sql, sizeof(sql), "UPDATE temp.birth SET %s", sets);
	must(sql);
	birth_insert(a, out, size);
}

/* What all tables are after it; the caller's to free. It leaves no trace. */
static char *
attack_run(const struct attack *a, const char *sql, int *rows)
{
	char *after;

	must("SAVEPOINT attack");
	(void)run(sql); /* refused, or not: it is the rows that count */
	after = dump();
	*rows = row_count(a->s->table);
	must("ROLLBACK TO attack; RELEASE attack");
	return after;
}

/*
 * False: not even without triggers would a row give way to it. ADDED is how
 * many rows there would be more then.
 */
static bool
attack_try(const struct attack *a, const char *sql, int added)
{
	char *before = dump(), *unguarded, *after;
	int rows = row_count(a->s->table), rows_after;
	bool bites;

	triggers(false);
	unguarded = attack_run(a, sql, &rows_after);
	triggers(true);
	bites = strcmp(before, unguarded) != 0 && rows_after < rows + added;
	after = attack_run(a, sql, &rows_after);
	if (bites && strcmp(before, after) != 0)
		fail_msg("%s, %s: a row gave way to\n%s\n%s", a->s->table,
		    a->key->name, sql, after);
	free(before);
	free(unguarded);
	free(after);
	return bites;
}

/* ---- every row against every other ----------------------------------------
 */

static bool
row_is_attacked(struct attack *a, int rows, bool *is_changed)
{
	char sql[TEXT_MOST];
	bool is_born;

	attack_insert(a, sql, sizeof(sql));
	is_born = attack_try(a, sql, 1);
	for (a->from = 0; a->from < rows; a->from++) {
		attack_update(a, sql, sizeof(sql));
		if (a->from != a->at && attack_try(a, sql, 0))
			*is_changed = true;
	}
	return is_born;
}

static void
key_is_attacked(const struct sample *s, const char *order, const struct key *k)
{
	struct attack a = {.s = s, .key = k, .order = order};
	bool is_born = false, is_changed = false;
	int rows = row_count(s->table);

	for (a.at = 0; a.at < rows; a.at++) {
		a.also = NULL;
		is_born |= row_is_attacked(&a, rows, &is_changed);
		if ((a.also = s->also) != NULL)
			is_born |= row_is_attacked(&a, rows, &is_changed);
	}
	if (!is_born || (!is_changed && rows != 1))
		fail_msg("%s, %s: no row of the sample is in anyone's way",
		    s->table, k->name);
}

/* A table of one row has room for no other; of the others one can be born. */
static void
sample_check(const struct sample *s, const char *order)
{
	const struct key none = {"", "", false};
	const struct attack a = {.s = s, .key = &none};
	int rows = row_count(s->table);
	char sql[TEXT_MOST];

	if (rows == 1) {
		(void)snprintf(
		    sql, sizeof(sql), "UPDATE %s SET %s = 2", s->table, order);
		assert_int_equal(SQLITE_CONSTRAINT, run(sql));
		return;
	}
	birth_put(s);
	birth_insert(&a, sql, sizeof(sql));
	must("SAVEPOINT birth");
	must(sql);
	assert_int_equal(rows + 1, row_count(s->table));
	must("ROLLBACK TO birth; RELEASE birth");
}

/* The indexes, and the integer that tells rows apart, by all its names. */
static const char keys_sql[] =
    "SELECT i.name, (SELECT group_concat(COALESCE(c.name, '?'), ', ')"
    " FROM pragma_index_info(i.name) c), 0"
    " FROM pragma_index_list(?1) i WHERE i.\"unique\" = 1"
    " UNION ALL SELECT 'rowid', n.value, 1 FROM pragma_table_list(?1) t,"
    " json_each('[\"rowid\", \"oid\", \"_rowid_\"]') n"
    " WHERE t.schema = 'main' AND t.wr = 0"
    " UNION ALL SELECT 'rowid', group_concat(c.name), 0"
    " FROM pragma_table_list(?1) t, pragma_table_info(?1) c"
    " WHERE t.schema = 'main' AND t.wr = 0 AND c.pk > 0"
    " AND NOT EXISTS (SELECT 1 FROM pragma_index_list(?1)"
    " WHERE origin = 'pk')"
    " HAVING COUNT(*) > 0";

/* The primary key. */
static void
order_of(const struct sample *s, char *out, size_t size)
{
	word_of("SELECT group_concat(name, ', ') FROM pragma_table_info(?1)"
		" WHERE pk > 0",
	    s->table, out, size);
}

static size_t
keys_of(const struct sample *s, struct key *keys, size_t most)
{
	sqlite3_stmt *row = ask(keys_sql);
	size_t count = 0;

	(void)sqlite3_bind_text(row, 1, s->table, -1, SQLITE_STATIC);
	for (; sqlite3_step(row) == SQLITE_ROW; count++) {
		assert_true(count < most);
		(void)snprintf(keys[count].name, sizeof(keys[count].name), "%s",
		    text_of(row, 0));
		(void)snprintf(
		    keys[count].columns, COLUMNS_SIZE, "%s", text_of(row, 1));
		keys[count].is_hidden = sqlite3_column_int(row, 2) != 0;
	}
	(void)sqlite3_finalize(row);
	return count;
}

static void
no_row_gives_way(void **state)
{
	struct key keys[8];
	char order[COLUMNS_SIZE];
	size_t i, k, count;

	for (i = 0; i < SAMPLES; i++) {
		open_copy(&samples[i]);
		order_of(&samples[i], order, sizeof(order));
		sample_check(&samples[i], order);
		count =
		    keys_of(&samples[i], keys, sizeof(keys) / sizeof(*keys));
		assert_int_not_equal(0, count);
		for (k = 0; k < count; k++)
			key_is_attacked(&samples[i], order, &keys[k]);
		(void)sqlite3_close(db);
	}
}

/* ---- a default in the place of NULL ---------------------------------------
 */

/* Was it refused? */
static bool
is_refused(const char *table, const char *how, const char *column,
    const char *value, const char *order, int at)
{
	char sql[TEXT_MOST];
	int rc;

	(void)snprintf(sql, sizeof(sql),
	    "UPDATE%s main.%s SET %s = %s WHERE (%s) = (SELECT %s FROM main.%s"
	    " ORDER BY %s LIMIT 1 OFFSET %d)",
	    how, table, column, value, order, order, table, order, at);
	must("SAVEPOINT attack");
	rc = run(sql);
	must("ROLLBACK TO attack; RELEASE attack");
	return rc == SQLITE_CONSTRAINT;
}

/* How many defaults are refused; none may come by way of a NULL. */
static int
defaults_are_tried(const struct sample *s, const char *order)
{
	sqlite3_stmt *column = ask("SELECT name, dflt_value FROM"
				   " pragma_table_info(?1) WHERE \"notnull\""
				   " AND dflt_value IS NOT NULL");
	int rows = row_count(s->table), refused = 0, at;

	(void)sqlite3_bind_text(column, 1, s->table, -1, SQLITE_STATIC);
	while (sqlite3_step(column) == SQLITE_ROW) {
		for (at = 0; at < rows; at++) {
			if (!is_refused(s->table, "", text_of(column, 0),
				text_of(column, 1), order, at))
				continue;
			if (!is_refused(s->table, " OR REPLACE",
				text_of(column, 0), "NULL", order, at))
				fail_msg("%s, row %d: %s is NULL", s->table, at,
				    text_of(column, 0));
			refused++;
		}
	}
	(void)sqlite3_finalize(column);
	return refused;
}

static void
no_default_comes_by_a_null(void **state)
{
	char order[COLUMNS_SIZE];
	int refused = 0;
	size_t i;

	for (i = 0; i < SAMPLES; i++) {
		open_copy(&samples[i]);
		order_of(&samples[i], order, sizeof(order));
		refused += defaults_are_tried(&samples[i], order);
		(void)sqlite3_close(db);
	}
	assert_int_not_equal(0, refused);
}

/* SQLite's own table of the last ids takes no trigger, and holds no row. */
static void
every_table_is_tried(void **state)
{
	sqlite3_stmt *row;
	size_t i, count = 0;

	open_copy(NULL);
	row = ask("SELECT name FROM pragma_table_list WHERE schema = 'main'"
		  " AND type <> 'view' AND name NOT LIKE 'sqlite_%'");
	for (; sqlite3_step(row) == SQLITE_ROW; count++) {
		for (i = 0; i < SAMPLES; i++) {
			if (strcmp(samples[i].table, text_of(row, 0)) == 0)
				break;
		}
		if (i == SAMPLES)
			fail_msg("%s is not tried", text_of(row, 0));
	}
	(void)sqlite3_finalize(row);
	(void)sqlite3_close(db);
	assert_int_equal(SAMPLES, count);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(no_row_gives_way),
	    cmocka_unit_test(no_default_comes_by_a_null),
	    cmocka_unit_test(every_table_is_tried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
