/*
 * What a feed is asked to leave out, and the names under which the ledger
 * keeps its position (feed.md 1.1, 4.2).
 */
#ifndef INTAKE_FILTERS_H
#define INTAKE_FILTERS_H

#include "common/buffer.h"
#include "common/config.h"
#include "common/url.h"

#define FILTER_IDS_MAX 100
#define FILTER_DIGEST_SIZE 17

/* Dimensions, in the byte order of their names. */
enum filter {
	FILTER_ACTOR_TYPES,
	FILTER_BUCKETS,
	FILTER_CREATORS,
	FILTER_EXCLUDE_PERFORMERS,
	FILTER_PERFORMERS,
	FILTER_TYPES,
	FILTER_COUNT
};

struct filter_words {
	char **list; /* in byte order, each once */
	size_t count;
};

/* Of each dimension only the member of its kind is used; empty is absent. */
struct filters {
	struct config_ids ids[FILTER_COUNT];
	struct filter_words words[FILTER_COUNT];
};

/* "buckets", ...: the key in a query. */
const char *filter_name(enum filter f);

void filters_add_id(struct filters *f, enum filter which, int64_t id);
void filters_add_word(struct filters *f, enum filter which, const char *word);
void filters_free(struct filters *f);

/*
 * The connector's own: persons only, never this agent's own acts, only the
 * buckets of --project. Fails when there are more than a feed takes.
 */
int filters_of_config(
    struct filters *f, const struct config *c, struct error *e);
/* Those of a URL that the feed wrote; a wrong id or a key twice fails. */
int filters_of_query(struct filters *f, const struct url_query *q);

/* Append "name=value&" for each dimension from FIRST up to, not with, END. */
void filters_write_query(const struct filters *f, enum filter first,
    enum filter end, struct buffer *b);
/* The canonical JSON object. */
void filters_write_json(const struct filters *f, struct buffer *b);
/* The first 16 hex digits of its SHA-256. */
void filters_digest(
    const struct filters *f, char out[static FILTER_DIGEST_SIZE]);

/* Checkpoint identity; both members malloc'ed and the caller's. */
struct feed_key {
	char *flat;    /* of this account, agent and filter set */
	char *lineage; /* of this account and agent */
};
void feed_key_make(struct feed_key *key, const char *origin,
    const struct config *c, const struct filters *f);
void feed_key_free(struct feed_key *key);

#endif
