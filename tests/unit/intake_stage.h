/*
 * Intake's subjects on a stage: a Basecamp that answers as scripted, a ledger
 * and an outbox at the other ends of real links, all in one loop. What intake
 * does is written down line by line in a journal that tests compare.
 */
#ifndef TESTS_UNIT_INTAKE_STAGE_H
#define TESTS_UNIT_INTAKE_STAGE_H

#include "common/buffer.h"
#include "intake/intake.h"

#define STAGE_AGENT 52007412
#define STAGE_OPERATOR 26909558
#define STAGE_PROJECT 48699913

struct stage_answer;

struct stage {
	struct role role;
	int64_t hand[16]; /* as the supervisor is told */
	size_t hand_count;
	struct intake in;
	struct config *config;

	struct evhttp *server;
	int closed; /* of stage_nobody_answers(); or 0 */
	char base_url[64];
	struct stage_answer *answers; /* waiting, in order */

	struct peer *ledger, *outbox, *mcpd; /* the other ends */
	struct peer *mcpd_here;              /* intake's end of that link */
	struct buffer journal;

	/* What the ledger says. */
	const char *position;
	int64_t served, lineage_served;
	bool lineage_is_known;
	int64_t depth;
	struct msg_undecided undecided[8]; /* in order of id */
	size_t undecided_count;
	int64_t retry_in_ms;         /* with "none" */
	struct msg_thread_is thread; /* recording_id 0: refused */

	/* What the outbox says: NULL is a token, else FAILED's reason. */
	const char *no_token;
	int64_t token_serial;
};

/* A new one with default limits made short; intake is not configured yet. */
struct stage *stage_new(void);
/* Whoever is asked for anything from now on: the connection is refused. */
void stage_nobody_answers(struct stage *s);
void stage_free(struct stage *s);
/* As CONFIG_END would. */
void stage_configure(struct stage *s);

/*
 * One answer to the next GET whose path (with query) begins with PREFIX below
 * the account. HEADERS is "Name: value\n..." or NULL; in BODY and HEADERS
 * every '@' stands for the server's base URL and account.
 */
void stage_answer(struct stage *s, const char *prefix, int status,
    const char *headers, const char *body);

/* Run until the journal holds TEXT; fails the test after five seconds. */
void stage_await(struct stage *s, const char *text);
/* Run MS longer. */
void stage_linger(struct stage *s, int ms);
/* Write a line of the test's own. */
void stage_note(struct stage *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The journal is TEXT; then it is emptied. */
void stage_expect(struct stage *s, const char *text);
size_t stage_count(const struct stage *s, const char *text);

/* ---- what the feed is told ----------------------------------------------- */

#define ROW_BUT(id, more)                                                     \
	"{\"id\":" id ",\"kind\":\"comment_created\",\"action\":\"created\"," \
	"\"event_type\":\"comment.created\",\"bucket_id\":48699913,"          \
	"\"creator_id\":26909558,\"recording_id\":1000001,"                   \
	"\"created_at\":\"2026-07-14T06:10:00.159Z\"" more "}"
#define ROW(id) ROW_BUT(id, ",\"performed_by_id\":null")
#define PAGE(rows, more) "{\"events\":[" rows "],\"position\":\"p\"" more "}"
#define D16 "\"0123456789abcdef\""
#define POSITION_400 "{\"error\":\"x\",\"reason\":\"invalid_position\"}"

#endif
