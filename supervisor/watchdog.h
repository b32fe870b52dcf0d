/*
 * PING on descriptor 3, and what follows silence: SIGABRT, then SIGKILL. It
 * runs while something is outstanding, or all the time when the service
 * manager wants to hear of us; an idle connector is not woken by it.
 */
#ifndef SUPERVISOR_WATCHDOG_H
#define SUPERVISOR_WATCHDOG_H

#include "supervisor/child.h"

void watchdog_init(struct supervisor *sv);
void watchdog_end(struct supervisor *sv);
/* Something is outstanding from now on: whoever is asked must answer. */
void watchdog_wake(struct supervisor *sv);
/*
 * Something has happened that others are told of in notices, which nobody
 * answers: everybody is asked once, with the next tick.
 */
void watchdog_stir(struct supervisor *sv);
/* Ask everybody now; somebody wants to know how they are. */
void watchdog_ask(struct supervisor *sv);
/* A new life of that child: it was not asked anything yet. */
void watchdog_forget(struct child *c);

#endif
