/*
 * Random stories for a ledger and its model: what a peer might well send as
 * things stand in the model, and now and then what none should. A step is a
 * number of dice; what it becomes depends on the model's state, so that a
 * story stays a story when steps are dropped from it.
 */
#ifndef TESTS_MODEL_STORY_H
#define TESTS_MODEL_STORY_H

#include "common/role.h"
#include "tests/unit/model.h"

/* Steps that are no request. */
#define STEP_WAIT MSG_NONE       /* the clock goes on, or back */
#define STEP_RESTART MSG_HELLO   /* the ledger dies and comes back */
#define STEP_CONFIGURE MSG_SETUP /* another generation of routes */
#define STEP_RETAIN MSG_STOP     /* the night's retention */

/* What ended so long ago is no longer kept: retention. */
#define KEEP_MS 86400000

struct step {
	enum msg_type type;
	bool is_joined; /* in one turn with the next one */
	uint64_t dice;
};

/* A request as it is to be sent. */
struct said {
	struct msg m;
	enum role_id from;
	const char *attempt; /* of an mcpd's link, or "" */
	int64_t ids[8];
};

/* The next step, as things stand. */
struct step story_next(struct model *w, uint64_t *dice);
/* What S says; texts are literals or model_text(). */
void story_say(struct model *w, const struct step *s, struct said *out);
/* How far the clock goes for a STEP_WAIT, in milliseconds. */
int64_t story_wait(const struct step *s);
/* W's routes in its next generation. */
void story_configure(struct model *w, const struct step *s);

#endif
