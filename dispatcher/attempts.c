#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/xmalloc.h"
#include "dispatcher/attempt.h"

struct attempt *
attempt_new(struct dispatcher *d, const char *id)
{
	struct attempt *a = xcalloc(1, sizeof(*a));

	a->d = d;
	a->stop = "";
	a->token = a->pidfd = -1;
	(void)snprintf(a->id, sizeof(a->id), "%s", id);
	LIST_INSERT_HEAD(&d->attempts, a, entry);
	return a;
}

void
attempt_free(struct attempt *a)
{
	LIST_REMOVE(a, entry);
	session_close(a);
	if (a->token != -1)
		(void)close(a->token);
	attempt_timers_free(a);
	free(a->trigger);
	free(a->url);
	free(a);
}

struct attempt *
attempt_find(struct dispatcher *d, const char *id)
{
	struct attempt *a;

	LIST_FOREACH (a, &d->attempts, entry) {
		if (strcmp(a->id, id) == 0)
			return a;
	}
	return NULL;
}

static int64_t
attempts_counted(const struct dispatcher *d, bool held_only)
{
	const struct attempt *a;
	int64_t n = 0;

	LIST_FOREACH (a, &d->attempts, entry)
		n += !held_only || a->state == AT_HELD;
	return n;
}

int64_t
attempts_count(const struct dispatcher *d)
{
	return attempts_counted(d, false);
}

int64_t
attempts_held(const struct dispatcher *d)
{
	return attempts_counted(d, true);
}

void
attempts_join(struct dispatcher *d)
{
	struct attempt *a;

	LIST_FOREACH (a, &d->attempts, entry) {
		if (a->state >= AT_KEYING && a->state <= AT_TURN)
			attempt_join_beside(a);
	}
}

void
attempts_configured(struct dispatcher *d)
{
	struct attempt *a;

	LIST_FOREACH (a, &d->attempts, entry) {
		if (a->state >= AT_TURN && a->state <= AT_CUTTING)
			attempt_ticker_begin(a);
	}
}

void
attempts_shutdown(struct dispatcher *d)
{
	struct attempt *a, *next;

	for (a = LIST_FIRST(&d->attempts); a != NULL; a = next) {
		next = LIST_NEXT(a, entry);
		attempt_event(a, EV_SHUTDOWN);
	}
}
