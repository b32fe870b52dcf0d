/*
 * The handlers, one for each message that the ledger answers; the table is
 * in ledger.c. What each asks and gives back is in common/protocol.def.
 */
#ifndef LEDGER_HANDLERS_H
#define LEDGER_HANDLERS_H

#include "ledger/ledger.h"

#define HANDLER(name)      \
	int handle_##name( \
	    struct ledger *l, const struct request *q, struct answer *a)

/* feed.c */
HANDLER(entry);
HANDLER(record);
HANDLER(checkpoint);
HANDLER(drop_position);
HANDLER(gap);
/* loss.c */
HANDLER(loss);
HANDLER(loss_next);
HANDLER(loss_cursor);
HANDLER(loss_entry);
HANDLER(loss_deadline);
HANDLER(loss_close);
/* quarantine.c */
HANDLER(count_death);
/* verdict.c */
HANDLER(next_undecided);
HANDLER(verdict);
/* hold.c */
HANDLER(hold);
HANDLER(release);
/* decision.c */
HANDLER(redispatch);
HANDLER(discard);
/* startable.c */
HANDLER(next_startable);
/* task.c */
HANDLER(launch);
HANDLER(rekey);
HANDLER(take_over);
/* join.c */
HANDLER(join);
HANDLER(expose);
/* attempt.c */
HANDLER(running);
HANDLER(progress);
HANDLER(refusal);
HANDLER(still_running);
HANDLER(tree_held);
HANDLER(next_live);
HANDLER(identity);
/* settle.c */
HANDLER(end);
/* adopt.c */
HANDLER(adoptable_next);
HANDLER(adopt);
HANDLER(settle);
/* worker.c */
HANDLER(bind);
HANDLER(check_token);
HANDLER(get_dispatch);
HANDLER(ack_dispatch);
HANDLER(thread_of);
/* complete.c */
HANDLER(complete_dispatch);
/* post.c */
HANDLER(post);
/* outbox.c */
HANDLER(next_due);
HANDLER(claim);
HANDLER(receipt);
HANDLER(refused);
HANDLER(defer);
HANDLER(in_doubt);
HANDLER(next_sending);
/* reconcile.c */
HANDLER(listed);
/* import.c */
HANDLER(import);
/* resolve.c */
HANDLER(resolve);
/* renewal.c */
HANDLER(renewal_hold);
HANDLER(renewal_hold_of);
/* query.c */
HANDLER(connection);
HANDLER(query);

#undef HANDLER

#endif
