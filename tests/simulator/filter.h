/*
 * The filters of the poll lane (feed.md 1.1) in the canonical form of their
 * digest (feed.md 4.2): an object of present dimensions, each a sorted list
 * without repeats, "self" resolved.
 */
#ifndef SIMULATOR_FILTER_H
#define SIMULATOR_FILTER_H

#include "tests/simulator/feed.h"

#define FILTER_DIGEST_SIZE 17

/* A new object, or NULL with E when a value is refused. */
json_t *filter_parse(json_t *query, int64_t caller, struct error *e);
bool filter_passes(json_t *filter, const struct feed_event *event);
void filter_digest(json_t *filter, char out[FILTER_DIGEST_SIZE]);
/* Copy the dimensions of QUERY as they were presented into TO. */
void filter_copy_raw(json_t *query, json_t *to);

#endif
