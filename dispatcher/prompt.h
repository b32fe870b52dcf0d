/*
 * What a worker is told (dispatch.md 11): ids, the way of working, and nothing
 * of the request itself, which it pulls.
 */
#ifndef DISPATCHER_PROMPT_H
#define DISPATCHER_PROMPT_H

#include <stdint.h>

#define PROMPT_MAX 1000 /* bytes, with the longest ids, trigger and URL */

/*
 * TRIGGER is used only if it is one of admission's words; URL only if it is
 * plain (url_is_plain()), else it is left out whole. Malloc'ed.
 */
char *prompt_first(
    int64_t task_id, int64_t event_id, const char *trigger, const char *url);
/* What came to the conversation since; to be handled alike. Malloc'ed. */
char *prompt_follow_up(int64_t event_id);

#endif
