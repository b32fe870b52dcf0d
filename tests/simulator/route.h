/*
 * What the simulator serves: one static table (route.c), and the patterns
 * by which faults, gates and counts name requests.
 *
 * A pattern is "METHOD /a/{id}/b": {name} is one segment that is a positive
 * decimal id, * one segment of any kind, a * at the end also all that
 * follows, and * as METHOD any method. A ".json" at the end does not count,
 * on either side.
 */
#ifndef SIMULATOR_ROUTE_H
#define SIMULATOR_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROUTE_IDS 4
#define ROUTE_PATTERN_MAX 512

struct exchange;

enum route_flag {
	ROUTE_ACCOUNT = 1, /* the first id is the account; needs a bearer */
	ROUTE_WRITE = 2,   /* needs a JSON object and a bearer that may write */
	ROUTE_STEER = 4,   /* the tests' own: no log, no gate, no fault */
};

struct route {
	const char *pattern;
	void (*handle)(struct exchange *x);
	unsigned int flags;
};

/* NULL when nothing serves this; IDS gets the ids of the path. */
const struct route *route_find(
    const char *method, const char *path, int64_t ids[ROUTE_IDS]);
/* Has TEXT the form of a pattern? */
bool pattern_is_valid(const char *text);
/* IDS may be NULL. */
bool pattern_matches(const char *pattern, const char *method, const char *path,
    int64_t ids[ROUTE_IDS]);

/* The handlers, by the file that has them. */
void auth_server_show(struct exchange *x); /* auth.c */
void auth_resource_show(struct exchange *x);
void auth_token_create(struct exchange *x);
void auth_authorization_show(struct exchange *x);
void connection_create(struct exchange *x); /* connection.c */
void connection_token_create(struct exchange *x);
void ticket_create(struct exchange *x);
void profile_show(struct exchange *x); /* reads.c */
void person_show(struct exchange *x);
void project_show(struct exchange *x);
void comment_show(struct exchange *x);
void message_show(struct exchange *x);
void todo_show(struct exchange *x);
void card_show(struct exchange *x);
void line_show(struct exchange *x);
void subscription_show(struct exchange *x);
void history_show(struct exchange *x);
void cable_open(struct exchange *x);
void projects_list(struct exchange *x); /* lists.c */
void people_list(struct exchange *x);
void chats_list(struct exchange *x);
void comments_list(struct exchange *x);
void boosts_list(struct exchange *x);
void lines_list(struct exchange *x);
void comment_create(struct exchange *x); /* writes.c */
void comment_update(struct exchange *x);
void line_create(struct exchange *x);
void boost_create(struct exchange *x);
void event_boost_create(struct exchange *x);
void events_poll(struct exchange *x); /* poll.c */
void steer_emit(struct exchange *x);  /* steer.c */
void steer_publish(struct exchange *x);
void steer_log(struct exchange *x);
void steer_messages(struct exchange *x);
void steer_state(struct exchange *x);
void steer_cable(struct exchange *x);
void steer_disconnect(struct exchange *x);
void steer_mention(struct exchange *x); /* mention.c */
void steer_fault(struct exchange *x);   /* fault.c */
void steer_fault_remove(struct exchange *x);
void steer_fault_clear(struct exchange *x);
void steer_gate(struct exchange *x); /* gate.c */
void steer_release(struct exchange *x);
void steer_world(struct exchange *x); /* update.c */
void steer_world_show(struct exchange *x);
void steer_await(struct exchange *x); /* await.c */

#endif
