/*
 * What leaves on stdout and stderr. A reader that is slow or stops must not
 * stop the supervisor: bytes wait in a bounded queue and are written when
 * poll says so, at most PIPE_BUF at a time; what finds the queue full is
 * counted, and the reader is told how much it missed (design 3, "Flow").
 * O_NONBLOCK is not set: it would be set for whoever shares the descriptor.
 */
#ifndef SUPERVISOR_LINES_H
#define SUPERVISOR_LINES_H

#include <event2/event.h>

#include "common/log.h"

#define LINES_QUEUE_MAX (1024 * 1024)

/* From now on nothing here blocks, log lines of this process included. */
void lines_init(struct event_base *base);
/* One NDJSON line, without its newline, to stdout. */
void lines_publish(const char *text);
/* One line of the log to stderr, in WHO's name. TEXT is printable. */
void lines_log(const char *who, enum log_level level, const char *text);
/* Write what can be written at once; afterwards log lines go out directly. */
void lines_end(void);

#endif
