/* What was posted through the API, in order: comments, lines, boosts. */
#ifndef SIMULATOR_MESSAGES_H
#define SIMULATOR_MESSAGES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* KIND is comment, chat_line or boost; EVENT_ID 0 for none. */
void messages_add(const char *kind, int64_t id, int64_t recording_id,
    int64_t event_id, int64_t creator_id, const char *content,
    const char *created_at);
/* NULL or "": of all kinds. */
size_t messages_count(const char *kind);
/* {"messages":[...],"counts":{...}}; a new reference. */
json_t *messages_json(const char *kind);

#endif
