/* What a service manager hears of us (sd_notify), without its library. */
#ifndef SUPERVISOR_NOTIFY_H
#define SUPERVISOR_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Take NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment,
 * so that nothing we start speaks for us.
 */
void notify_init(void);
/* How often WATCHDOG=1 is wanted at least, in ms; 0: not at all. */
int64_t notify_watchdog_ms(void);

/*
 * One datagram of NAME=value lines; nothing without a service manager. What
 * cannot be sent is lost, and false returned: it must never hold us up.
 */
bool notify_send(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* RELOADING=1 with the stamp that systemd asks for. */
void notify_reloading(void);
/* STATUS=TEXT, if it is not what was said last. */
void notify_status(const char *text);

#endif
