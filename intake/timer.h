/* Timers of the loop in milliseconds, and chance. */
#ifndef INTAKE_TIMER_H
#define INTAKE_TIMER_H

#include <event2/event.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/log.h"

static inline struct event *
timer_new(struct event_base *base, event_callback_fn fired, void *arg)
{
	struct event *timer = evtimer_new(base, fired, arg);

	if (timer == NULL)
		fatalx("no timer");
	return timer;
}

/* Once, in MS milliseconds; 0 is the loop's next turn. Replaces what was. */
static inline void
timer_start(struct event *timer, int64_t ms)
{
	struct timeval tv = {(time_t)(ms / 1000), (ms % 1000) * 1000};

	if (event_add(timer, &tv) == -1)
		fatalx("timer not started");
}

static inline void
timer_stop(struct event *timer)
{
	(void)event_del(timer);
}

/* Uniform in 0..MOST. */
static inline int64_t
chance_ms(int64_t most)
{
	if (most <= 0)
		return 0;
	return arc4random_uniform(
	    most < UINT32_MAX - 1 ? (uint32_t)most + 1 : UINT32_MAX);
}

/* FIRST doubled TRY - 1 times (TRY from 1), at most MOST. */
static inline int64_t
backoff_ms(int64_t first, int64_t most, int64_t try)
{
	while (try > 1 && first < most) {
		first *= 2;
		try--;
	}
	return first < most ? first : most;
}

#endif
