/*
 * The control socket from its other end: NDJSON lines, as
 * supervisor/control_wire.h describes them.
 */
#ifndef CONNECTCTL_CONNECTION_H
#define CONNECTCTL_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/error.h"
#include "common/paths.h"

struct connection;

/*
 * Connect and take the greeting. NULL with an exit code of common/exit.h in
 * e->code: EXIT_NOT_RUNNING when nobody serves the socket, EXIT_REFUSED when
 * we may not, EXIT_FAILED when what answers is no connectd we know.
 */
struct connection *connection_open(
    const struct paths *paths, const char *profile, struct error *e);
void connection_close(struct connection *c);
/*
 * The descriptor that came with what was read so far, the caller's from now
 * on; -1: none did.
 */
int connection_take_fd(struct connection *c);
/* Send one request, an object. */
int connection_send(struct connection *c, json_t *request, struct error *e);
/*
 * Wait for a line, or the end, until UNTIL of the monotonic clock (ms): then
 * connection_line() does not wait. False when there is none by then.
 */
bool connection_wait(struct connection *c, int64_t until);
/*
 * The next line, without its newline; it stays valid until the next call.
 * NULL at the end, with E's text set when that came too early.
 */
const char *connection_line(struct connection *c, size_t *len, struct error *e);

#endif
