/* The JSON of people, projects, recordings, boosts (feed.md 8.3). */
#ifndef SIMULATOR_RENDER_H
#define SIMULATOR_RENDER_H

#include "tests/simulator/world.h"

#define SGID_SIZE 160

/* All return new references. */
json_t *person_json(const struct person *p);
/* The same by id; a person who is not in the world is shown by id alone. */
json_t *person_json_of(int64_t id);
json_t *project_json(const struct project *p);
json_t *recording_json(const struct recording *r);
json_t *boost_json(const struct boost *b);
/* A row of a recording's history, as it was kept, for the reader. */
json_t *history_json(const struct recording *r, json_t *row);
json_t *subscription_json(const struct recording *r, int64_t caller);

/* The person's attachable_sgid. */
void person_sgid(int64_t id, char out[SGID_SIZE]);
/* What is created on a recording of this type: "comment", "chat.line". */
const char *recording_subject(const struct recording *r);

#endif
