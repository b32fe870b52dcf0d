#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/mention.h"
#include "common/text.h"
#include "mcpd/instruction.h"

static const struct json_rules rules = {
    .max_bytes = 4 * 1024 * 1024,
    .max_depth = 64,
    .max_members = 100000,
    .flags = JSON_RULE_LAST_WINS | JSON_RULE_BIG_AS_REAL,
};

/*
 * The snapshot as intake made it. The worker has the event now, so a snapshot
 * that cannot be read makes the instruction poorer and not an error.
 */
static json_t *
snapshot_read(const struct msg_instruction *in)
{
	struct error e;
	json_t *snapshot =
	    json_read(in->snapshot.bytes, in->snapshot.len, &rules, &e);

	if (json_is_object(snapshot))
		return snapshot;
	log_warnx("event %lld: its snapshot cannot be read: %s",
	    (long long)in->event_id,
	    snapshot == NULL ? e.text : "not an object");
	json_decref(snapshot);
	return json_object();
}

/* Columns hold what Basecamp served: it is made UTF-8, whatever it was. */
static json_t *
text_json(const char *text)
{
	size_t len;
	char *clean = text_make_utf8(text, strlen(text), &len);
	json_t *json = json_stringn(clean, len);

	free(clean);
	return json;
}

/* A member as it is, null if there is none. */
static json_t *
member(const json_t *snapshot, const char *name)
{
	json_t *value = json_object_get(snapshot, name);

	return value == NULL ? json_null() : json_incref(value);
}

static json_t *
content_stripped(const json_t *snapshot, int64_t agent_id)
{
	const json_t *content = json_object_get(snapshot, "content");
	json_t *stripped;
	size_t len;
	char *text;

	if (!json_is_string(content))
		return json_string("");
	(void)mention_strip(json_string_value(content),
	    json_string_length(content), agent_id, &text, &len);
	stripped = json_stringn(text, len);
	free(text);
	return stripped;
}

static json_t *
recording_json(const struct msg_instruction *in, const json_t *snapshot)
{
	return json_pack("{s:I, s:I, s:o, s:o, s:o}", "bucket_id",
	    (json_int_t)in->bucket_id, "recording_id",
	    (json_int_t)in->recording_id, "type", member(snapshot, "type"),
	    "title", member(snapshot, "title"), "url",
	    text_json(in->recording_url));
}

static json_t *
reply_to_json(const struct msg_instruction *in)
{
	if (in->reply_kind[0] == '\0')
		return json_null();
	return json_pack("{s:o, s:I}", "kind", text_json(in->reply_kind),
	    "recording_id", (json_int_t)in->reply_recording_id);
}

static void
set(json_t *object, const char *name, json_t *value)
{
	if (json_object_set_new(object, name, value) == -1)
		fatalx("a result cannot be built: %s", name);
}

json_t *
instruction_json(const struct msg_instruction *in, int64_t agent_id)
{
	json_t *snapshot, *out;

	if (!in->found)
		return json_pack("{s:n, s:s}", "instruction", "message",
		    "Nothing is waiting for you.");
	snapshot = snapshot_read(in);
	out = json_object();
	set(out, "event_id", json_integer(in->event_id));
	set(out, "event_type", text_json(in->event_type));
	set(out, "trigger", text_json(in->trigger));
	if (in->class[0] != '\0')
		set(out, "class", text_json(in->class));
	set(out, "recording", recording_json(in, snapshot));
	set(out, "reply_to", reply_to_json(in));
	set(out, "requester_id", json_integer(in->requester_id));
	set(out, "acknowledge", json_boolean(in->acknowledge));
	set(out, "guard_acknowledged", json_boolean(in->guard_acknowledged));
	set(out, "delivery", text_json(in->delivery));
	set(out, "content", content_stripped(snapshot, agent_id));
	set(out, "content_updated_at", member(snapshot, "updated_at"));
	json_decref(snapshot);
	return json_pack("{s:o}", "instruction", out);
}

json_t *
receipt_json(const struct msg_report_is *in)
{
	json_t *links = NULL, *out = json_object();

	if (in->links.len != 0)
		links = json_read(in->links.bytes, in->links.len, &rules, NULL);
	set(out, "event_id", json_integer(in->event_id));
	set(out, "delivery", text_json(in->delivery));
	if (in->ack_id.has)
		set(out, "ack_id", json_integer(in->ack_id.value));
	if (in->outcome[0] != '\0')
		set(out, "outcome", text_json(in->outcome));
	if (in->reply_id.has)
		set(out, "reply_id", json_integer(in->reply_id.value));
	if (json_array_size(links) != 0)
		set(out, "links", json_incref(links));
	json_decref(links);
	return out;
}
