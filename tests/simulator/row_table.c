#include <string.h>

#include "common/xmalloc.h"
#include "tests/simulator/rows.h"

static int64_t
row_id(const void *row)
{
	return *(const int64_t *)row;
}

size_t
row_after(const struct row_table *table, int64_t id)
{
	size_t low = 0, high = table->count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (row_id(table->rows[middle]) <= id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void *
row_find(const struct row_table *table, int64_t id)
{
	size_t at = row_after(table, id);

	if (at == 0 || row_id(table->rows[at - 1]) != id)
		return NULL;
	return table->rows[at - 1];
}

static void
row_grow(struct row_table *table)
{
	table->capacity = table->capacity == 0 ? 16 : table->capacity * 2;
	table->rows =
	    xreallocarray(table->rows, table->capacity, sizeof(*table->rows));
}

void
row_insert(struct row_table *table, void *row)
{
	size_t at = row_after(table, row_id(row));

	if (table->count == table->capacity)
		row_grow(table);
	memmove(&table->rows[at + 1], &table->rows[at],
	    (table->count - at) * sizeof(*table->rows));
	table->rows[at] = row;
	table->count++;
}

bool
row_remove(struct row_table *table, int64_t id)
{
	size_t at = row_after(table, id);

	if (at == 0 || row_id(table->rows[at - 1]) != id)
		return false;
	row_free(table->type, table->rows[at - 1]);
	memmove(&table->rows[at - 1], &table->rows[at],
	    (table->count - at) * sizeof(*table->rows));
	table->count--;
	return true;
}

int64_t
row_last(const struct row_table *table)
{
	if (table->count == 0)
		return 0;
	return row_id(table->rows[table->count - 1]);
}
