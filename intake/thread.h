/*
 * A thread for a worker: the recording that an event is about and its last
 * comments, in pages of a few KiB (design 6). The ledger says whether that
 * link's task may read it.
 */
#ifndef INTAKE_THREAD_H
#define INTAKE_THREAD_H

#include "intake/intake.h"
#include "intake/thread_page.h"

struct threads *threads_new(struct intake *in);
/* READ_THREAD of an mcpd; M is freed. */
void thread_asked(struct threads *t, struct peer *mcpd, struct msg *m);
/* That mcpd's link is gone: its reads are given up, it will ask again. */
void threads_forget(struct threads *t, const struct peer *mcpd);

#endif
