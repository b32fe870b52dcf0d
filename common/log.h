/*
 * Logging: four verbs, the process name in front. A library returns errors
 * and logs nothing; the role that can decide logs, once.
 *
 * The supervisor and the tools write lines to stderr. A child hands each
 * line to the sink that role_start() installs, which makes it a LOG frame on
 * the link to the supervisor and drops it when the link is full: a log line
 * must never block a child.
 */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <stdarg.h>
#include <stddef.h>

enum log_level {
	LOG_LEVEL_DEBUG,
	LOG_LEVEL_INFO,
	LOG_LEVEL_WARN,
	LOG_LEVEL_ERROR
};

typedef void (*log_sink)(enum log_level level, const char *line);

/* NAME is kept, not copied; it stands in front of every line. */
void log_init(const char *name, enum log_level lowest);
/* Lines go to SINK from now on; NULL puts stderr back. */
void log_set_sink(log_sink sink);
/*
 * From now on no line waits for a reader of stderr: one that finds no room is
 * dropped, and so is what goes beyond MOST bytes in a minute (mcp.md 7). For
 * a program whose parent may not read it.
 */
void log_bound_stderr(size_t most);
/* The name given to log_init(), "" before. */
const char *log_name(void);

void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* log_warn() adds the text of errno, log_warnx() does not. */
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warnx(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Log, then end the process with EXIT_CRASH. */
_Noreturn void fatal(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));
_Noreturn void fatalx(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));

/*
 * A printable copy of foreign text for a log line: control bytes (C0, DEL,
 * C1 as UTF-8 or raw), and invalid UTF-8 become '?', cut at 200 bytes. The
 * result is one of eight static buffers used in turn.
 */
const char *log_safe(const char *text);
const char *log_safe_n(const char *text, size_t len);

#endif
