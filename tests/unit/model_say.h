/*
 * One function a request: what a peer might well say as things stand, made up
 * of dice.
 */
#ifndef TESTS_MODEL_SAY_H
#define TESTS_MODEL_SAY_H

#include "tests/unit/model_pick.h"
#include "tests/unit/model_story.h"

#define MODEL_SAY(name) \
	void say_##name(struct model *w, uint64_t *dice, struct said *s)

/* intake's */
MODEL_SAY(record);
MODEL_SAY(verdict);
MODEL_SAY(checkpoint);
MODEL_SAY(drop_position);
MODEL_SAY(loss);
MODEL_SAY(loss_next);
MODEL_SAY(loss_cursor);
MODEL_SAY(loss_entry);
MODEL_SAY(loss_deadline);
MODEL_SAY(loss_close);
MODEL_SAY(count_death);
MODEL_SAY(entry);
MODEL_SAY(gap);
MODEL_SAY(next_undecided);
MODEL_SAY(thread_of);

/* the dispatcher's */
MODEL_SAY(next_startable);
MODEL_SAY(launch);
MODEL_SAY(join);
MODEL_SAY(expose);
MODEL_SAY(rekey);
MODEL_SAY(take_over);
MODEL_SAY(running);
MODEL_SAY(progress);
MODEL_SAY(refusal);
MODEL_SAY(still_running);
MODEL_SAY(tree_held);
MODEL_SAY(next_live);
MODEL_SAY(identity);
MODEL_SAY(end);
MODEL_SAY(adoptable_next);
MODEL_SAY(adopt);

/* a task's mcpd's */
MODEL_SAY(bind);
MODEL_SAY(check_token);
MODEL_SAY(get_dispatch);
MODEL_SAY(ack_dispatch);
MODEL_SAY(complete_dispatch);
MODEL_SAY(post);

/* the outbox's */
MODEL_SAY(claim);
MODEL_SAY(receipt);
MODEL_SAY(refused);
MODEL_SAY(defer);
MODEL_SAY(in_doubt);
MODEL_SAY(listed);
MODEL_SAY(next_sending);
MODEL_SAY(renewal_hold);
MODEL_SAY(renewal_hold_of);
MODEL_SAY(connection);

/* an operator's, and the supervisor's */
MODEL_SAY(resolve);
MODEL_SAY(redispatch);
MODEL_SAY(discard);
MODEL_SAY(hold);
MODEL_SAY(release);
MODEL_SAY(import);
MODEL_SAY(settle);

#endif
