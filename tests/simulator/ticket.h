/* Tickets for the cable (feed.md 2.1). */
#ifndef SIMULATOR_TICKET_H
#define SIMULATOR_TICKET_H

#include <stdint.h>

/* How many were ever issued. */
int64_t ticket_issued(void);

#endif
