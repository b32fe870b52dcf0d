/*
 * The simulated account: people, projects, recordings, boosts, clients
 * (feed.md 8.1). One process, one world, changed only by the loop.
 */
#ifndef SIMULATOR_WORLD_H
#define SIMULATOR_WORLD_H

#include "tests/simulator/rows.h"

#define WORLD_OPERATOR 26909558
#define WORLD_AGENT 52007412
#define WORLD_PROJECT 48699913
#define WORLD_MESSAGE 1000000
#define WORLD_CLIENT "agent-client"
#define WORLD_SECRET "not-a-real-secret"
#define WORLD_OPERATOR_TOKEN "operator-token"
#define WORLD_DATE "2026-01-05T09:00:00Z"

struct person {
	int64_t id;
	char *name;
	bool agent;
	bool client;
	int64_t boss_id;
	int64_t identity_id;
	struct id_list readable_by; /* absent: by everyone */
};

struct project {
	int64_t id;
	char *name;
	bool circle; /* a direct-message space, in no list of projects */
	struct id_list members;
};

struct recording {
	int64_t id;
	char *type;
	int64_t bucket_id;
	int64_t parent_id; /* 0: none */
	int64_t creator_id;
	char *title;
	char *content;
	struct id_list assignee_ids;
	struct id_list subscriber_ids;
	bool completed;
	char *status;
	char *created_at;
	char *updated_at;
	json_t *events; /* its history, oldest first; NULL when empty */
};

struct boost {
	int64_t id;
	int64_t recording_id;
	int64_t event_id; /* 0: on the recording itself */
	int64_t booster_id;
	char *content;
	char *created_at;
};

/* Known by client_id; id is only its place. An empty secret opens nothing. */
struct client {
	int64_t id;
	char *client_id;
	char *secret;
	int64_t person_id;
	char *scope;
	int64_t token_lifetime; /* seconds; 0: one hour */
};

struct world {
	struct row_table people;
	struct row_table projects;
	struct row_table recordings;
	struct row_table boosts;
	struct row_table clients;
};

extern struct world world;
extern const struct row_type person_type, project_type, recording_type,
    boost_type, client_type;

/* Fill the world as feed.md 8.1 has it. */
void world_init(void);

struct person *world_person(int64_t id);
struct project *world_project(int64_t id);
struct client *world_client(const char *client_id);
bool world_is_member(int64_t project_id, int64_t person_id);
/* The recording if CALLER may see it, else NULL. */
struct recording *world_recording(int64_t id, int64_t caller);
bool recording_is_line(const struct recording *r);
/* Comments go on neither comments nor anything of a chat. */
bool recording_takes_comments(const struct recording *r);

/* New rows with the next free id and the present time. */
struct recording *world_add_recording(int64_t id, const char *type,
    int64_t bucket_id, int64_t parent_id, int64_t creator_id);
struct boost *world_add_boost(int64_t recording_id, int64_t event_id,
    int64_t booster_id, const char *content);
/* The id that the next recording gets. */
int64_t world_next_recording(void);
/* Replaces a text field of a row. */
void text_replace(char **field, const char *text);

/* RFC 3339 in UTC with milliseconds, as Basecamp dates things. */
#define STAMP_SIZE 32
const char *stamp_ns(int64_t ns, char out[STAMP_SIZE]);
const char *stamp_now(char out[STAMP_SIZE]);

#endif
