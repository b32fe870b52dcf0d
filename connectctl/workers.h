/*
 * What became of the workers of live tasks, by the one rule of who a process
 * is (operator.md 3.1). Nothing is signalled.
 */
#ifndef CONNECTCTL_WORKERS_H
#define CONNECTCTL_WORKERS_H

#include <jansson.h>

/*
 * Give each of STATUS's live_tasks its `worker`: running, gone, held (the
 * leader is gone, its group is not), unverified, or not_recorded.
 */
void workers_tell(json_t *status);

#endif
