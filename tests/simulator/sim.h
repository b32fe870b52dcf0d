/* What every part of the simulator shares: the loop, its address, options. */
#ifndef SIMULATOR_SIM_H
#define SIMULATOR_SIM_H

#include <event2/event.h>

#include "tests/simulator/rows.h"

struct sim_options {
	int64_t page_size;        /* rows of a feed page */
	int64_t safety_delay_ms;  /* younger events are not polled yet */
	int64_t ping_interval_ms; /* of the cable */
	bool frozen_head;      /* a walk ends where the feed was at its start */
	bool bind_positions;   /* to their filters, else 409 */
	int64_t epoch;         /* what is older is gone, else 410; 0: none */
	bool page_directories; /* projects, people, chats in pages too */
	bool account_id_number; /* not a string, when an agent connects */
	bool write_events;      /* what is posted comes back on the feed */
	bool wrap_content;      /* stored rich text gets a div of its own */
};

struct sim {
	struct event_base *base;
	char url[128]; /* http://127.0.0.1:PORT */
	int64_t account;
	struct sim_options options;
};

extern struct sim sim;
extern const struct row_type options_type;

#endif
