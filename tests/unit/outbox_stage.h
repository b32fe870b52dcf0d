/*
 * The outbox's own work between a ledger, a token endpoint and a Basecamp that
 * are played: whatever it asks of these two waits for the test's answer, the
 * ledger answers by itself and counts.
 */
#ifndef TESTS_OUTBOX_STAGE_H
#define TESTS_OUTBOX_STAGE_H

#include <setjmp.h>

#include "common/http.h"
#include "outbox/outbox.h"

#define STAGE_DOUBTS_MAX 4

/* A request that waits for its answer; DONE is NULL while there is none. */
struct stage_request {
	http_done done;
	void *arg;
	int count; /* made so far */
	char bearer[32];
};

/* An intent that an earlier run left `sending`. */
struct stage_doubt {
	int64_t failures;
	bool over;      /* LISTED or IN_DOUBT */
	bool backs_off; /* a DEFER, since the last look at it */
};

struct outbox_stage {
	struct outbox o;
	struct peer *at_ledger;
	int64_t due; /* so many intents wait to be claimed */
	int asked;   /* NEXT_DUE and NEXT_SENDING, so many */
	int claimed, received, refused, deferred, listed, in_doubt;
	int64_t delay_ms; /* of the last DEFER */
	struct stage_doubt doubts[STAGE_DOUBTS_MAX];
	size_t doubt_count;
	struct stage_request mint, post, listing;
	int64_t limits[LIMIT_COUNT];
	bool may_exit, exited;
	int code; /* it exited with */
	jmp_buf exit;
};

extern struct outbox_stage stage;

/* With a credential, but neither a configuration nor a token yet. */
void stage_open(void);
void stage_close(void);
/* From here on it works. */
void stage_configure(void);
void stage_credential(const char *secret);
/* Let it run until *COUNT is at least WANTED, which it has to be in time. */
void stage_until(const int *count, int wanted);
/* Let it run for so long: nothing is to happen meanwhile. */
void stage_run(int64_t ms);
/* A step of the stop ends the process: run until it does. */
void stage_until_exit(void);
void stage_answer(
    struct stage_request *r, int status, const char *body, int64_t retry_after);
/* The token endpoint's next answer is that token, once it is asked. */
void stage_mint(const char *token);

#endif
