#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"

#define LINE_MAX_BYTES 1024
#define SAFE_MAX 200
#define SAFE_BUFFERS 8

static const char *process_name = "";
static enum log_level lowest_level = LOG_LEVEL_INFO;
static log_sink line_sink;
/* Of stderr: what a minute may hold, 0 for anything, and what this one does. */
static struct {
	size_t most, used;
	int64_t since;
} bound;

static const char *const level_names[] = {
    [LOG_LEVEL_DEBUG] = "debug",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_ERROR] = "fatal",
};

void
log_init(const char *name, enum log_level lowest)
{
	process_name = name;
	lowest_level = lowest;
}

void
log_set_sink(log_sink sink)
{
	line_sink = sink;
}

const char *
log_name(void)
{
	return process_name;
}

void
log_bound_stderr(size_t most)
{
	bound.most = most;
	bound.used = 0;
	bound.since = clock_monotonic_ms();
}

/* Asked, not set: O_NONBLOCK would be set for whoever shares the descriptor. */
static bool
stderr_takes(size_t len)
{
	struct pollfd pfd = {.fd = STDERR_FILENO, .events = POLLOUT};
	int64_t now;

	if (bound.most == 0)
		return true;
	now = clock_monotonic_ms();
	if (now - bound.since >= 60000) {
		bound.since = now;
		bound.used = 0;
	}
	if (bound.used + len > bound.most || poll(&pfd, 1, 0) != 1 ||
	    (pfd.revents & POLLOUT) == 0)
		return false;
	bound.used += len;
	return true;
}

/* One write, so that lines of several processes do not tear each other. */
static void
line_to_stderr(enum log_level level, const char *line)
{
	char out[LINE_MAX_BYTES + 64];
	int n;

	n = snprintf(out, sizeof(out), "%s: %s: %s\n", process_name,
	    level_names[level], line);
	if (n < 0)
		return;
	if ((size_t)n >= sizeof(out)) {
		n = sizeof(out) - 1;
		out[n - 1] = '\n';
	}
	if (stderr_takes((size_t)n) &&
	    write(STDERR_FILENO, out, (size_t)n) == -1)
		return; /* nowhere left to say it */
}

static void __attribute__((format(printf, 3, 0)))
log_line(enum log_level level, const char *reason, const char *fmt, va_list ap)
{
	char line[LINE_MAX_BYTES];
	size_t used;
	int saved = errno;

	if (level < lowest_level)
		return;
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	used = strlen(line);
	if (reason != NULL)
		(void)snprintf(
		    line + used, sizeof(line) - used, ": %s", reason);
	if (line_sink != NULL)
		line_sink(level, line);
	else
		line_to_stderr(level, line);
	errno = saved;
}

void
log_debug(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(LOG_LEVEL_DEBUG, NULL, fmt, ap);
	va_end(ap);
}

void
log_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(LOG_LEVEL_INFO, NULL, fmt, ap);
	va_end(ap);
}

void
log_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(LOG_LEVEL_WARN, strerror(errno), fmt, ap);
	va_end(ap);
}

void
log_warnx(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(LOG_LEVEL_WARN, NULL, fmt, ap);
	va_end(ap);
}

void
fatal(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(LOG_LEVEL_ERROR, strerror(errno), fmt, ap);
	va_end(ap);
	exit_now(EXIT_CRASH);
}

void
fatalx(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(LOG_LEVEL_ERROR, NULL, fmt, ap);
	va_end(ap);
	exit_now(EXIT_CRASH);
}

const char *
log_safe(const char *text)
{
	return log_safe_n(text, text == NULL ? 0 : strlen(text));
}

/*
 * Length of the well-formed, printable UTF-8 sequence at P, or 0. C1 controls
 * (U+0080 to U+009F) count as not printable: terminals act on them.
 */
static size_t
printable_utf8(const unsigned char *p, size_t left)
{
	static const unsigned int least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned int code;
	size_t n, i;

	if (p[0] < 0x80)
		return p[0] >= 0x20 && p[0] != 0x7f ? 1 : 0;
	n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
	if (n == 0 || n > left || p[0] > 0xf4)
		return 0;
	code = p[0] & (0xffU >> (n + 1));
	for (i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (code < least[n] || code > 0x10ffff || code < 0xa0 ||
	    (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return n;
}

const char *
log_safe_n(const char *text, size_t len)
{
	static char buffers[SAFE_BUFFERS][SAFE_MAX + 1];
	static unsigned int turn;
	char *out = buffers[turn++ % SAFE_BUFFERS];
	size_t used = 0, n;

	while (len > 0) {
		n = printable_utf8((const unsigned char *)text, len);
		if (used + (n == 0 ? 1 : n) > SAFE_MAX)
			break;
		if (n == 0) {
			out[used++] = '?';
			n = 1;
		} else {
			memcpy(out + used, text, n);
			used += n;
		}
		text += n;
		len -= n;
	}
	out[used] = '\0';
	return out;
}
