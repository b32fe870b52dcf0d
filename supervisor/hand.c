/*
 * The records that children have in hand, as they say themselves. It is kept
 * here because it must outlive them, the ledger included, and nothing else:
 * who dies of itself is seen by the supervisor or by nobody.
 */
#include "common/log.h"
#include "common/random.h"
#include "supervisor/child.h"

int
hand_move(struct child *c, int64_t event_id, bool taken)
{
	size_t i = 0;

	while (i < c->hand_count && c->hand[i] != event_id)
		i++;
	if (!taken && i < c->hand_count)
		c->hand[i] = c->hand[--c->hand_count];
	if (!taken || i < c->hand_count)
		return 0;
	if (c->hand_count == CHILD_HAND_MAX)
		return -1;
	c->hand[c->hand_count++] = event_id;
	return 0;
}

/*
 * The ledger, if it lives, reads this before LINK, and so before the
 * successor's first request; if not, its own successor does.
 */
static void
hand_count_death(const struct child *c, int64_t event_id)
{
	struct msg m = {.type = MSG_COUNT_DEATH};

	log_warnx(
	    "%s ended with event %lld in hand", c->name, (long long)event_id);
	m.count_death.event_id = event_id;
	m.count_death.death = c->death_id;
	(void)peer_request(c->sv->children[ROLE_LEDGER]->peer, &m, NULL, NULL);
}

void
hand_bury(struct child *c, bool is_own)
{
	size_t i;

	c->death_id[0] = '\0';
	if (is_own)
		random_hex(c->death_id, DEATH_ID_LEN / 2);
	for (i = 0; is_own && i < c->hand_count; i++)
		hand_count_death(c, c->hand[i]);
	c->hand_count = 0;
}
