/*
 * What a client's request says, and how one is put to the ledger: shared by
 * commands.c, which has the table, and decisions.c.
 */
#ifndef SUPERVISOR_COMMAND_H
#define SUPERVISOR_COMMAND_H

#include "common/json.h"
#include "supervisor/client.h"

/* Members that were not given are 0; of a text BYTES is NULL. */
struct command_request {
	int64_t event, intent, receipt, count;
	bool follow, gone;
	struct json_text role, nonce, resolution, attempt;
};

/*
 * Put M to the ledger for CLIENT, which waits. ANSWERED gets the reply, with
 * ARG: CLIENT, which is then not told when it has gone, or what is to hear the
 * reply all the same (a settlement). It calls command_forget(). A ledger that
 * is not there, or does not answer in CONTROL_QUERY_MS, is told to the client
 * as OVERDUE (a constant); the request itself then stands. False: it was not
 * asked, and CLIENT was told.
 */
bool command_ask_ledger(struct client *client, struct msg *m,
    peer_answer answered, void *arg, const char *overdue);
/* FAILED of the ledger, told to the client. */
void command_failed(struct client *client, const struct msg_failed *failed);

/* ---- decisions.c --------------------------------------------------------- */

void run_redispatch(struct client *client, const struct command_request *r);
void run_discard(struct client *client, const struct command_request *r);
void run_resolve(struct client *client, const struct command_request *r);
void run_settle(struct client *client, const struct command_request *r);
void run_token(struct client *client, const struct command_request *r);
/* Its client does not wait any more; the answer is heard all the same. */
void settlement_forget(struct settlement *s);

#endif
