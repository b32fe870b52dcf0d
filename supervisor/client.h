/*
 * One connection to the control socket: lines in, lines out, one request at a
 * time. Whatever it sends, at worst it loses this connection.
 */
#ifndef SUPERVISOR_CLIENT_H
#define SUPERVISOR_CLIENT_H

#include <event2/bufferevent.h>
#include <jansson.h>

#include "supervisor/control.h"
#include "supervisor/past.h"

struct settlement;

struct client {
	TAILQ_ENTRY(client) entry;
	struct supervisor *sv;
	struct client_list *list;
	struct bufferevent *stream;
	uid_t uid;
	enum control_right right;
	bool leaves;      /* no more is read; closed when all is written */
	bool follows;     /* wants transitions from now on */
	bool will_follow; /* once its query is answered */

	/* What its request waits for; nothing more is read meanwhile. */
	uint64_t query; /* of the ledger; 0: none */
	bool asks_status;
	const char *overdue; /* what is said when no answer comes */
	/* What it decides of an attempt, while that is being looked at. */
	struct {
		char attempt[ATTEMPT_ID_LEN + 1], nonce[33];
	} settles;
	struct settlement *settlement; /* that QUERY is of; NULL: none */
	/* The attempt whose end it is told of; "": none. */
	char awaits[ATTEMPT_ID_LEN + 1];
	const struct child *restarts;
	int64_t restarts_generation; /* of the life before */
	struct event *patience;      /* the ledger does not answer */
};
TAILQ_HEAD(client_list, client);

/* FD is taken over. Greets. It is in LIST until client_free(). */
struct client *client_new(struct supervisor *sv, struct client_list *list,
    int fd, uid_t uid, enum control_right right);
void client_free(struct client *client);
/* A committed transition, if it follows; it may be dropped for it. */
void client_publish(struct client *client, const char *line);

/* {"ok":true,"data":DATA}: DATA is JSON in one line. */
void client_reply(struct client *client, const char *data, size_t len);
/*
 * The same with FD, which is taken over, beside its first byte; for a client
 * that owes nothing else, or it is dropped.
 */
void client_reply_fd(
    struct client *client, const char *data, size_t len, int fd);
/* Has it read everything, and is nothing more to come by itself? */
bool client_is_quiet(const struct client *client);
/* {"ok":false,…}; the connection stays. WORD as in control.h. */
void client_refuse(struct client *client, const char *word, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));
/* Its request is under way: read no further before the answer. */
void client_waits(struct client *client);

/* ---- commands.c ---------------------------------------------------------- */

/* Answer one line, now or later. */
void command_run(struct client *client, const char *line, size_t len);
/* A child's state changed: is it what CLIENT waits for? */
void command_child_changed(struct client *client, const struct child *c);
/* CLIENT goes away: nothing may answer it any more. */
void command_forget(struct client *client);
/* An attempt's tree is gone, or cannot be proved gone. */
void command_attempt_over(
    struct client *client, const char *attempt, enum fate fate);

#endif
