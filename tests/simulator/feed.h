/*
 * The account's events and the two lanes they are on (feed.md 3, 8.4, 8.6).
 */
#ifndef SIMULATOR_FEED_H
#define SIMULATOR_FEED_H

#include "tests/simulator/rows.h"

enum feed_lane { LANE_POLL = 1, LANE_LIVE = 2 };

struct feed_event {
	int64_t id;
	char *event_type;
	char *kind;
	char *action;
	int64_t bucket_id;
	int64_t recording_id;
	int64_t creator_id;
	int64_t performed_by_id; /* 0: null */
	char *actor_type;
	char *created_at;
	bool visible_to_clients;
	json_t *details;          /* NULL: none */
	json_t *added_person_ids; /* of the history only; NULL: none */
	unsigned int lanes;
	int64_t born_ns; /* created_at on the wall clock */
};

extern struct row_table feed;
/* Its others are what POST /sim/emit takes besides. */
extern const struct row_type feed_event_type;

/*
 * Put EVENT (taken over, freed on failure) on LANES: fills what is empty,
 * appends to its recording's history. Returns its id, or -1 with E.
 */
int64_t feed_emit(
    struct feed_event *event, unsigned int lanes, struct error *e);
/* The same for an event of the simulator's own. */
int64_t feed_emit_plain(const char *event_type, int64_t bucket_id,
    int64_t recording_id, int64_t creator_id, json_t *details,
    unsigned int lanes);
/* Add LANES to an event; -1 when there is no such event. */
int feed_publish(int64_t id, unsigned int lanes);
/* "poll", "live", "both"; 0 for anything else. NULL is "both". */
unsigned int feed_lanes(const char *name);
/* Highest id on the poll lane that may be served now; 0: none. */
int64_t feed_head(void);
/* Is EVENT on the poll lane and old enough to be served? */
bool feed_is_ripe(const struct feed_event *event);
/* The row as the poll lane shows it. */
json_t *feed_row(const struct feed_event *event);
/* Highest event id that a page has carried. */
int64_t feed_last_served(void);
void feed_mark_served(int64_t id);

#endif
