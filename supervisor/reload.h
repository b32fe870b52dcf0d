/*
 * The configuration in force. connect.json is read at start, when it changes,
 * and on reload; each reading is a generation that all children get. Routes
 * follow the file by themselves; who may direct the agent, and all the rest,
 * changes only by an operator's reload (design 7). While the file does not
 * load, what was in force stays, marked unreadable: nothing new is admitted.
 */
#ifndef SUPERVISOR_RELOAD_H
#define SUPERVISOR_RELOAD_H

#include "supervisor/supervisor.h"

/* Take S over as the first generation; nobody is told yet. */
void reload_first(struct supervisor *sv, struct settings *s);
/* Watch connect.json from now on. */
void reload_init(struct supervisor *sv);
/* Why the file does not load, "" if it does. */
const char *reload_error(const struct supervisor *sv);

#endif
