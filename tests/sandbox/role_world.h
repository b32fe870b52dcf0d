/*
 * A role in a process of its own, and this program as its supervisor and its
 * ledger, frame by frame.
 */
#ifndef TESTS_SANDBOX_ROLE_WORLD_H
#define TESTS_SANDBOX_ROLE_WORLD_H

#include <event2/event.h>

#include "common/role.h"

#define DEADLINE_MS 10000
#define KEPT_MAX 256

struct world {
	struct event_base *base; /* never runs: frames are read one by one */
	int fd, peer_fd;
	pid_t child;
	char state_dir[64];
	struct msg *kept[KEPT_MAX]; /* came while another was awaited */
	size_t count;
};

/* The role's own row, for tests that want another. */
extern struct role_row world_row;
int prepare_usual(struct role *role, struct error *e);

uid_t role_uid(void); /* not root */
gid_t role_gid(void);

/* A SETUP as this process would send it; state_dir is NULL. */
struct msg setup_message(void);
/* Start the role and send it SETUP; its state_dir, if NULL, is made. */
struct world *world_new(struct msg *setup);
struct world *world_usual(void);
/* Around an end of a link that somebody else's child has. */
struct world *world_around(int fd, pid_t child);
void world_free(struct world *w);
/* Be the role, with that end of its link to the supervisor. */
_Noreturn void be_the_role(int fd);

void tell(struct world *w, struct msg *m);
/* The next message of that type; others are kept. */
struct msg *await(struct world *w, enum msg_type type);
/* The same, a LOG, ACCUSE, STARTING or STATE that has PART in its text. */
void await_text(struct world *w, enum msg_type type, const char *part);
/* Its exit code, or the negative number of the signal that killed it. */
int await_exit(struct world *w);

/* A link to its ledger, whose end is ours; then what the ledger says. */
void give_link(struct world *w);
void tell_peer(struct world *w, struct msg *m);
void greet(struct world *w, const char *build);
void say_waits(struct world *w, int64_t event_id);

#endif
