/*
 * The world around the control socket: what control.c, client.c and
 * commands.c call, counted; a ledger at the end of a link, that answers as it
 * is told; and a client. For test_control.c and test_client.c.
 */
#ifndef TESTS_UNIT_CONTROL_WORLD_H
#define TESTS_UNIT_CONTROL_WORLD_H

#include "supervisor/child.h"
#include "supervisor/client.h"

#define WAIT_MS 10000
/* The one that can be taken over. */
#define WORLD_ATTEMPT "att_0123456789abcdef01234567"

struct world {
	int stops, reloads, wrongs, restarts, asked, taken_over;
	bool reload_fails;
	int held, descends;          /* what vetting will find */
	enum fate fate;              /* of any attempt */
	bool was_had;                /* by this run; */
	const char *run_id;          /* what the ledger says of whose it is */
	const char *known_state;     /* and of its state */
	bool is_known, was_signaled; /* what is left of that attempt */
	pid_t client;                /* who connects; 0: this very process */
	char dir[64];
	/* The ledger's end of its link. */
	struct peer *ledger_end;
	bool ledger_answers;
	struct reply_to late; /* of the last it did not answer */
	const char *answer;   /* NULL: FAILED not_found */
	/* Decisions: what was asked last, and the answer to an event's. */
	struct {
		char nonce[33], by[129], resolution[17];
		int64_t id, receipt;
	} decision;
	struct msg_decided decided;
	const char *refuses;        /* FAILED refused, with this text */
	const char *refuses_settle; /* SETTLE alone */
	const char *runs; /* what is found of an attempt; NULL: nothing */
	int let_go;
};
extern struct world world;
extern struct supervisor sv;
extern struct child ledger;

/* A socket that is served, and a ledger that is ready. */
int world_set_up(void **state);
int world_tear_down(void **state);
/* Some turns of the loop. */
void settle(void);

/* Connect; greeted() also takes the greeting. */
int client_connect(void);
int greeted(void);
/* A client in a list of its own; the other end is returned. */
int client_alone(struct client_list *list, enum control_right right);
void say(int fd, const char *text);
/* One line without its newline; "" at the end of the stream. */
const char *read_line(int fd);
/* Both. */
const char *ask(int fd, const char *request);

#endif
