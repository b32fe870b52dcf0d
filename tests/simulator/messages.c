#include <string.h>

#include "tests/simulator/messages.h"

static const char *const kinds[] = {"comment", "chat_line", "boost"};

static json_t *messages;

void
messages_add(const char *kind, int64_t id, int64_t recording_id,
    int64_t event_id, int64_t creator_id, const char *content,
    const char *created_at)
{
	json_t *row = json_pack("{s:s,s:I,s:I,s:I,s:s,s:s}", "kind", kind, "id",
	    (json_int_t)id, "recording_id", (json_int_t)recording_id,
	    "creator_id", (json_int_t)creator_id, "content", content,
	    "created_at", created_at);

	if (messages == NULL)
		messages = json_array();
	if (event_id != 0)
		json_object_set_new(row, "event_id", json_integer(event_id));
	json_array_append_new(messages, row);
}

static int
is_kind(json_t *row, const char *kind)
{
	const char *have = json_string_value(json_object_get(row, "kind"));

	return kind == NULL || *kind == '\0' || strcmp(kind, have) == 0;
}

size_t
messages_count(const char *kind)
{
	size_t i, count = 0;
	json_t *row;

	json_array_foreach (messages, i, row) {
		count += is_kind(row, kind) ? 1 : 0;
	}
	return count;
}

json_t *
messages_json(const char *kind)
{
	json_t *list = json_array(), *counts = json_object(), *row;
	size_t i;

	json_array_foreach (messages, i, row) {
		if (is_kind(row, kind))
			json_array_append(list, row);
	}
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		json_object_set_new(counts, kinds[i],
		    json_integer((json_int_t)messages_count(kinds[i])));
	return json_pack("{s:o,s:o}", "messages", list, "counts", counts);
}
