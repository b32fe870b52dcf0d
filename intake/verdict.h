/*
 * A decision as the ledger takes it (admission.md 1.10-1.12, 3.1).
 */
#ifndef INTAKE_VERDICT_H
#define INTAKE_VERDICT_H

#include "common/clock.h"
#include "intake/recording.h"

#define SNAPSHOT_MAX ((size_t)4 * 1024 * 1024)

enum verdict_state { VERDICT_ADMITTED, VERDICT_BLOCKED, VERDICT_DISCARDED };

struct verdict {
	enum verdict_state state;
	const char *reason;  /* a constant; NULL if admitted */
	const char *trigger; /* a constant, NULL: none */
	bool acknowledge;
	int64_t requester_id;
	int64_t retry_at_ns;       /* throttled: not before; else 0 */
	const char *recording_url; /* NULL: not read */
	char conversation_key[40]; /* "": none */
	const char *reply_kind;    /* a constant, NULL: none */
	int64_t reply_recording_id;
	const struct config_route *route; /* NULL: not routed */
	struct buffer snapshot;           /* admitted only */
};

/* Key and reply destination of an event of that type (admission.md 3.1). */
void verdict_place(
    struct verdict *v, const struct pointer *p, const struct summary *s);

/* What admission read, for whoever works on it. */
struct snapshot_facts {
	const struct summary *summary;
	enum person_role role;
	bool is_owner;
	bool names_requester; /* the requester wrote the recording */
};
/* Compact JSON of at most SNAPSHOT_MAX bytes; the content is cut for that. */
void verdict_snapshot(struct buffer *b, const struct snapshot_facts *facts);

/* What bears on the next try of a record that is blocked; wall clock, ns. */
struct retry_clock {
	int64_t now;
	int64_t since;    /* the reason stands */
	int64_t retry_at; /* a server's "not before"; 0: none */
	int64_t interval, window;
};
/* When it is to be decided anew; 0: not by itself (admission.md 1.11). */
int64_t verdict_next_retry(const char *reason, const struct retry_clock *c);

/* Room for the stamps that a message points to. */
struct verdict_stamps {
	char retry_at[CLOCK_STAMP_SIZE], next_retry_at[CLOCK_STAMP_SIZE];
};
/* The message that carries V, whose texts it borrows. */
void verdict_fill(const struct verdict *v, const struct pointer *p,
    const int64_t *limits, struct verdict_stamps *stamps,
    struct msg_verdict *out);

#endif
