/*
 * One request and its answer, from arrival to the last byte (feed.md 8.2):
 *
 *	logged -> held at gates -> met by a fault or not -> handled -> sent
 *
 * A handler reads the request's members and gives exactly one answer_*();
 * one that must wait calls exchange_wait() instead and answers later.
 */
#ifndef SIMULATOR_EXCHANGE_H
#define SIMULATOR_EXCHANGE_H

#include <event2/http.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "tests/simulator/route.h"

#define EXCHANGE_BODY_MAX (1024 * 1024)
#define EXCHANGE_HEADERS_MAX (128 * 1024)

struct answer {
	int status;
	const char *type; /* Content-Type, a constant */
	char *text;
	size_t len;
	json_t *headers; /* name -> value; NULL for none */
};

/* What a fault does to one exchange; see fault.h. */
enum fault_mode {
	FAULT_NONE,
	FAULT_ANSWER,  /* the fault's own status, headers and body */
	FAULT_DROP,    /* the connection closes without a byte */
	FAULT_HANG,    /* no answer, the connection stays */
	FAULT_GARBAGE, /* 200 with bytes that are neither JSON nor UTF-8 */
	FAULT_WIRE     /* bytes that are not HTTP, then the end */
};

struct fault_effect {
	enum fault_mode mode;
	bool after; /* the handler runs, and the effect takes its answer */
	bool half;  /* what is sent ends in the middle of the body */
	int64_t delay_ms;
	int64_t pad; /* bytes of white space after the body */
	int status;
	json_t *headers; /* a reference, or NULL */
	json_t *body;    /* a reference: a string is sent as it is, or NULL */
};

enum exchange_stage {
	STAGE_ARRIVED,
	STAGE_HELD,    /* at a gate */
	STAGE_DELAYED, /* by a fault */
	STAGE_WAITING, /* the handler waits for something */
	STAGE_HUNG,    /* never to be answered */
	STAGE_ENDING   /* to be dropped at the loop's next turn */
};

struct exchange {
	TAILQ_ENTRY(exchange) link;
	struct evhttp_request *req; /* libevent's until it is answered */
	const struct route *route;  /* NULL: nothing of ours */
	int64_t ids[ROUTE_IDS];     /* in the path's order, account first */
	const char *method;
	char *path;     /* as it was sent, without the query */
	json_t *query;  /* key -> first value; never NULL */
	json_t *form;   /* a form's fields; NULL without a form body */
	json_t *body;   /* NULL unless the body is JSON */
	int64_t caller; /* who the bearer belongs to; 0: nobody */
	bool may_write; /* the bearer's scope is full */
	uint64_t entry; /* its number in the journal; 0: not logged */
	enum exchange_stage stage;
	struct event *gone; /* the client has left */
	struct event *timer;
	struct answer answer;
	struct fault_effect effect;
	void (*over)(struct exchange *x, bool left); /* of exchange_wait() */
};

/* evhttp's callback for every request. */
void exchange_begin(struct evhttp_request *req, void *unused);
/* Those held at gates run if none of the open gates matches them. */
void exchange_release_held(void);
size_t exchange_count_held(void);
/* Ends what hangs; what is delayed goes on at once. */
void exchange_drop_hung(void);

/*
 * In a handler: answer later. OVER runs when MS have passed, or with LEFT
 * when the client has gone, after which X is no more.
 */
void exchange_wait(struct exchange *x, int64_t ms,
    void (*over)(struct exchange *x, bool left));
/* Send the answer that was given to a waiting exchange; X is gone then. */
void exchange_finish(struct exchange *x);

const char *exchange_header(const struct exchange *x, const char *name);
/* A query value, NULL when absent. */
const char *exchange_query(const struct exchange *x, const char *key);
/* The page asked for, from 1; 0 when it is no number. */
size_t exchange_page(const struct exchange *x);
/* Is the Content-Type TYPE, whatever its parameters? */
bool exchange_is_type(const struct exchange *x, const char *type);

/* BODY is taken over. */
void answer_json(struct exchange *x, int status, json_t *body);
void answer_text(
    struct exchange *x, int status, const char *type, const char *text);
void answer_empty(struct exchange *x, int status);
/* {"error": ..., "reason": ...}; REASON may be NULL. */
void answer_error(struct exchange *x, int status, const char *reason,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void answer_header(struct exchange *x, const char *name, const char *value);

/* The parts of answer.c that only exchange.c uses. */
void answer_deliver(struct exchange *x);
void answer_free(struct answer *answer);
/* Put the effect's answer in the place of the handler's. */
void answer_replace(struct exchange *x);

/* A URL-encoded list as an object of strings, the first of a key wins. */
json_t *params_parse(const char *text, size_t len);
/* A JSON string of foreign bytes; what is no UTF-8 becomes '?'. */
json_t *text_json(const char *text, size_t len);

#endif
