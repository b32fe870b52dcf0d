#include <inttypes.h>

#include "common/log.h"
#include "intake/backlog.h"

#define WARN_DEPTH 1000
#define RECOVERED_DEPTH 500

bool
backlog_has_room(const struct backlog *b)
{
	return !b->is_paused && b->depth + b->in_flight < b->pause_depth;
}

void
backlog_pause(struct backlog *b)
{
	if (b->is_paused)
		return;
	b->is_paused = true;
	log_warnx("%" PRId64 " records wait for a decision: reading is paused",
	    b->depth);
}

/* Below the pause depth whatever the resume depth was set to. */
static bool
is_low(const struct backlog *b)
{
	return b->depth <= b->resume_depth && b->depth < b->pause_depth;
}

void
backlog_told(struct backlog *b, int64_t depth)
{
	b->depth = depth;
	if (!b->is_warned && depth >= WARN_DEPTH) {
		b->is_warned = true;
		log_warnx("%" PRId64 " records wait for a decision", depth);
	} else if (b->is_warned && depth <= RECOVERED_DEPTH) {
		b->is_warned = false;
		log_info("%" PRId64 " records wait for a decision", depth);
	}
	if (!b->is_paused || !is_low(b))
		return;
	b->is_paused = false;
	log_info("reading goes on");
	b->resumed(b->arg);
}
