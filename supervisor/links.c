#include <sys/socket.h>

#include <unistd.h>

#include "supervisor/child.h"

/* Who may talk to whom (design 3); the supervisor talks to all. */
static const struct {
	enum role_id a, b;
} matrix[] = {
    {ROLE_INTAKE, ROLE_LEDGER}, {ROLE_DISPATCHER, ROLE_LEDGER},
    {ROLE_OUTBOX, ROLE_LEDGER}, {ROLE_MCPD, ROLE_LEDGER},
    {ROLE_INTAKE, ROLE_OUTBOX},     /* the access token */
    {ROLE_MCPD, ROLE_INTAKE},       /* a thread, by event id */
    {ROLE_DISPATCHER, ROLE_OUTBOX}, /* STARTED, replies to adopt */
};

bool
links_has(enum role_id a, enum role_id b)
{
	size_t i;

	for (i = 0; i < sizeof(matrix) / sizeof(matrix[0]); i++) {
		if ((matrix[i].a == a && matrix[i].b == b) ||
		    (matrix[i].a == b && matrix[i].b == a))
			return true;
	}
	return false;
}

/*
 * END is taken over. What LINK says of the other is to be trusted: DEATH is
 * that of the other's last life.
 */
static void
link_tell(
    struct child *to, const struct child *other, const char *death, int end)
{
	struct msg m = {.type = MSG_LINK};

	m.link.role = (int64_t)other->role;
	m.link.generation = other->generation;
	m.link.attempt = other->attempt;
	m.link.death = death;
	m.link.end = end;
	peer_notice(to->peer, &m);
}

/* A is new; B had a link with the one before it. */
static int
link_make(struct child *a, struct child *b, struct error *e)
{
	int pair[2];

	if (!child_is_there(b) || !links_has(a->role, b->role))
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == -1)
		return error_errno(e, "no link to %s", b->name);
	link_tell(a, b, "", pair[0]);
	link_tell(b, a, a->death_id, pair[1]);
	return 0;
}

/*
 * The fence (design 3.1): a child is only started when the one before it is
 * reaped, so that the other end finds the end of the old link before the new.
 */
int
links_make(struct child *c, struct error *e)
{
	struct supervisor *sv = c->sv;
	struct child *other;
	int role;

	for (role = 0; role < ROLE_COUNT; role++) {
		other = sv->children[role];
		if (other != NULL && other != c && link_make(c, other, e) == -1)
			return -1;
	}
	TAILQ_FOREACH (other, &sv->mcpds, entry) {
		if (other != c && link_make(c, other, e) == -1)
			return -1;
	}
	return 0;
}
