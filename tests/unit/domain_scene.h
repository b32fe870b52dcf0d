/*
 * The worker's domain from its JSON to the ledger and back: a real mcpd asks a
 * real ledger, and what is compared is what the model reads (ledger.md 6).
 */
#ifndef TESTS_DOMAIN_SCENE_H
#define TESTS_DOMAIN_SCENE_H

#include "tests/unit/ledger_fixture.h"
#include "tests/unit/mcp_world.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define CONNECT "basecamp_connect"

/* An action with its params, event 101 among them. */
#define ACT(action, more) \
	"{\"action\":\"" action "\",\"params\":{\"event_id\":101" more "}}"
#define GET ACT("get_dispatch", "")
#define ACK(more) ACT("ack_dispatch", more)
#define COMPLETE(outcome, more) \
	ACT("complete_dispatch", ",\"outcome\":\"" outcome "\"" more)

#define NOT_EXPOSED \
	"event 101 was not handed to this worker; call get_dispatch first"
#define NOT_CURRENT "This task is not current any more. Stop working on it."
#define GENERIC                                                       \
	"The connector could not answer. Try again; report it if it " \
	"persists."

/* Where each call finds both of them. */
struct domain {
	struct fixture *f;
	struct world *w; /* its link is attempt ATT_1's */
	/* Between the ledger's COMMIT and mcpd's answer; or NULL. */
	void (*after_commit)(void);
};
extern struct domain domain;

/* For cmocka. */
int domain_setup(void **state);
int domain_teardown(void **state);

/* The text that the model gets; it must be an error, or none. */
const char *domain_call(bool wants_error, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A call with these arguments is answered with just this text. */
void domain_answers(const char *arguments, const char *want);
/* It is an error of that kind, with that text. */
void domain_refuses(const char *arguments, const char *kind, const char *text);

/* mcpd's token from now on. */
void domain_use(const char *token);
/* Event 101 is launched; and it was handed over. */
void domain_launch(void);
void domain_pull(void);

/* Every value of every row; the caller's. */
char *domain_everything(void);
/* These calls, answered as they may be, write nothing. */
void domain_writes_nothing(
    const char *const *calls, size_t count, bool wants_error);

#endif
