#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/xmalloc.h"
#include "ledger/import_file.h"

/* Nothing is shorter than {"event_id":1,"decision":"done"} and its comma. */
#define ENTRY_BYTES_LEAST 32

static const struct json_rules file_rules = {
    .max_bytes = IMPORT_FILE_MAX,
    .max_depth = 3,
    .max_members = 2 + 3 * (IMPORT_FILE_MAX / ENTRY_BYTES_LEAST),
};
/* The file was judged as a whole: these only keep an entry small. */
static const struct json_rules entry_rules = {
    .max_bytes = 4096, .max_depth = 1, .max_members = 16};
static const struct json_rules frame_rules = {
    .max_bytes = IMPORT_FILE_MAX, .max_depth = 2, .max_members = 16};

static int
entry_error(size_t number, const char *why, struct error *e)
{
	return error_set(e, "entry %zu: %s", number, why);
}

/* Two members, and no other. */
static int
entry_members(const json_t *object, struct import_entry *entry, struct error *e)
{
	struct json_text decision;

	if (!json_is_object(object))
		return error_set(e, "not an object");
	if (json_member_id(
		object, "event_id", JSON_REQUIRED, &entry->event_id, e) == -1 ||
	    json_member_string(
		object, "decision", JSON_REQUIRED, &decision, e) == -1)
		return -1;
	if (json_object_size(object) != 2)
		return error_set(e, "an unknown member");
	entry->is_done = strcmp(decision.bytes, "done") == 0;
	if (decision.has_nul ||
	    (!entry->is_done && strcmp(decision.bytes, "held") != 0))
		return error_set(e, "decision: neither done nor held");
	return 0;
}

static int
entry_read(const struct json_span *span, size_t number,
    struct import_entry *entry, struct error *e)
{
	struct error why = {0, ""};
	json_t *object = json_read(span->bytes, span->len, &entry_rules, &why);
	int rc = -1;

	if (object != NULL)
		rc = entry_members(object, entry, &why);
	json_decref(object);
	return rc == -1 ? entry_error(number, why.text, e) : 0;
}

static int
entries_read(
    const struct json_span *array, struct import_file *file, struct error *e)
{
	struct json_span element;
	size_t at = 0, room = 0;

	while (json_span_next(array, &at, &element)) {
		if (file->count == room) {
			room = room == 0 ? 64 : room * 2;
			file->entries = xreallocarray(
			    file->entries, room, sizeof(*file->entries));
		}
		if (entry_read(&element, file->count + 1,
			&file->entries[file->count], e) == -1)
			return -1;
		file->count++;
	}
	return 0;
}

/* ---- one event twice ---------------------------------------------------- */

static int
compare_entries(const void *a, const void *b)
{
	const struct import_entry *x = *(const struct import_entry *const *)a;
	const struct import_entry *y = *(const struct import_entry *const *)b;

	if (x->event_id != y->event_id)
		return x->event_id < y->event_id ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* The first that repeats an earlier one, in the file's order. */
static int
repeats_check(const struct import_file *file, struct error *e)
{
	const struct import_entry **sorted, *twice = NULL;
	size_t i;

	sorted = xreallocarray(NULL, file->count + 1, sizeof(*sorted));
	for (i = 0; i < file->count; i++)
		sorted[i] = &file->entries[i];
	qsort(sorted, file->count, sizeof(*sorted), compare_entries);
	for (i = 1; i < file->count; i++) {
		if (sorted[i]->event_id == sorted[i - 1]->event_id &&
		    (twice == NULL || sorted[i] < twice))
			twice = sorted[i];
	}
	free(sorted);
	if (twice == NULL)
		return 0;
	return error_set(e, "entry %zu: event %" PRId64 " was there before",
	    (size_t)(twice - file->entries) + 1, twice->event_id);
}

/* ---- the whole ----------------------------------------------------------- */

/* What is around the entries: their bytes are left out of the text. */
static json_t *
frame_read(const char *bytes, size_t len, const struct json_span *entries,
    struct error *e)
{
	size_t before = (size_t)(entries->bytes - bytes);
	struct buffer text = {0};
	json_t *frame;

	buffer_add(&text, bytes, before);
	buffer_add_text(&text, "[]");
	buffer_add(
	    &text, entries->bytes + entries->len, len - before - entries->len);
	frame = json_read(text.bytes, text.len, &frame_rules, e);
	buffer_free(&text);
	return frame;
}

static int
frame_check(const char *bytes, size_t len, const struct json_span *entries,
    struct error *e)
{
	json_t *frame = frame_read(bytes, len, entries, e);
	int64_t version = 0;
	int rc = -1;

	if (frame == NULL)
		return -1;
	if (json_member_int(frame, "version", JSON_REQUIRED, &version, e) == -1)
		;
	else if (version != IMPORT_FILE_VERSION)
		(void)error_set(
		    e, "version: only %d is known", IMPORT_FILE_VERSION);
	else if (json_object_size(frame) != 2)
		(void)error_set(e, "an unknown member");
	else
		rc = 0;
	json_decref(frame);
	return rc;
}

int
import_file_read(
    const char *bytes, size_t len, struct import_file *file, struct error *e)
{
	struct json_span entries;

	memset(file, 0, sizeof(*file));
	if (json_check(bytes, len, &file_rules, e) == -1)
		return -1;
	if (json_span(bytes, len, "entries", &entries) == -1)
		return error_set(e, "entries: missing");
	if (*entries.bytes != '[')
		return error_set(e, "entries: not an array");
	if (frame_check(bytes, len, &entries, e) == -1)
		return -1;
	if (entries_read(&entries, file, e) == 0 && repeats_check(file, e) == 0)
		return 0;
	import_file_free(file);
	return -1;
}

void
import_file_free(struct import_file *file)
{
	free(file->entries);
	memset(file, 0, sizeof(*file));
}
