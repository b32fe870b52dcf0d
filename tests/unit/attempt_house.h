/*
 * The supervisor's side of attempts in a test's process: a dispatcher and a
 * ledger at the far ends of real links, a stand-in for mcpd, and a real worker,
 * which is the test's own program run as "agent" with a deed in its MODE:
 *	plain	ends with 3 when its input ends
 *	deaf	and is deaf to SIGTERM
 *	orphan	ends with 5 and leaves a process in its group
 *	bridge	has a process that connects to the task's socket
 *	bridges	has six, one after the other
 */
#ifndef TESTS_UNIT_ATTEMPT_HOUSE_H
#define TESTS_UNIT_ATTEMPT_HOUSE_H

#include "supervisor/attempt.h"

#define DEADLINE_MS 10000
#define ATTEMPT "att_0123456789abcdef01234567"
#define EARLIER "att_ffffffffffffffffffffffff"
#define PROJECT 7
#define RUN "11111111111111111111111111111111"

struct house {
	struct supervisor sv;
	char top[64];
	/* What came of the stand-in for mcpd, and what it is to do. */
	bool mcpd_lives, spawn_fails;
	int mcpd_spawned, mcpd_drained;
	int stream; /* of CONNECTED; or -1 */
	/* What the dispatcher was told. */
	int exits, exit_code, mcpd_exits;
	bool exit_signaled;
	/* What the ledger says of any attempt. */
	struct msg_identity_is known;
};
extern struct house house;

/* What came back; the descriptors of WORKER_SPAWNED are the test's. */
struct answer {
	bool is_there;
	enum msg_type type;
	char word[41], text[513]; /* reason or fate, and its text */
	struct msg_worker_spawned worker;
};

/* First in main(): as "agent" it does not return. */
void house_begin(int argc, char *argv[]);
/* cmocka's set-up and tear-down; the latter waits for all children. */
int house_make(void **state);
int house_remove(void **state);
/* What connect.json says: the worker's MODE and program, below the top. */
void house_settings_make(const char *mode, const char *program);

/* Run the loop until IS_TRUE says so, or fail. */
void house_run_until(
    bool (*is_true)(const void *arg), const void *arg, const char *what);
bool house_no_children(const void *arg);
bool house_drain_began(const void *arg); /* more drained than *(int *)ARG */
void house_await(const struct answer *a);
/* All that is under way has been handled: an echo has gone round. */
void house_settle(void);
/* Any request of the dispatcher's. */
void house_ask(struct answer *a, struct msg *m);
void house_ask_mcpd(struct answer *a, const char *attempt);
void house_ask_worker(struct answer *a, int64_t generation);
void house_ask_end(struct answer *a, const char *attempt, int64_t grace_ms);
void house_assert_refused(const char *attempt);

/* An attempt with an mcpd that is ready; its worker; the worker's ends. */
void house_prepare(void);
struct msg_worker_spawned house_start_worker(void);
void house_worker_forget(struct msg_worker_spawned *w);
void house_mcpd_ends(void);
/* End it: nothing is answered before its mcpd has drained. */
void house_end_and_assert(const char *fate);

#endif
