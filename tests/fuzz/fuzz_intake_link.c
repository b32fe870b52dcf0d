/*
 * Hostile bytes on the links that intake trusts least: the first two bytes
 * say how many of the rest a task's mcpd writes behind its HELLO; what follows
 * them the ledger answers. Nothing may happen but that the link ends, or that
 * a read is begun and given up again.
 */
#include <sys/socket.h>

#include <string.h>
#include <unistd.h>

#include "common/build_id.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "intake/thread.h"
#include "tests/fuzz/fuzz.h"

#define TURNS 12
#define ATTEMPT "att_0123456789abcdef01234567"

static struct role role;
static struct intake in;
static struct peer *outbox; /* without a link: no token ever comes */

/* In place of common/role. */
struct peer *
role_peer(struct role *r, enum role_id peer, const char *attempt)
{
	(void)r;
	(void)attempt;
	MUST(peer == ROLE_OUTBOX);
	return outbox;
}

void
role_state(struct role *r, const char *name, const char *fmt, ...)
{
	(void)r;
	(void)name;
	(void)fmt;
}

void
role_in_hand(struct role *r, int64_t event_id, bool taken)
{
	(void)r;
	(void)event_id;
	(void)taken;
}

static void
read_thread(struct peer *mcpd, struct msg *m, void *arg)
{
	(void)arg;
	thread_asked(in.threads, mcpd, m);
}

static void
broken(struct peer *peer, const char *text, void *arg)
{
	(void)peer;
	(void)arg;
	MUST(*text != '\0');
}

static const peer_handler mcpd_handlers[MSG_COUNT] = {
    [MSG_READ_THREAD] = read_thread,
};
static const peer_handler no_handlers[MSG_COUNT];
static const struct peer_ops mcpd_ops = {.handlers = mcpd_handlers,
				 .broken = broken},
			     ledger_ops = {
				 .handlers = no_handlers, .broken = broken};

static void
silent(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void
set_up(void)
{
	struct error e;

	if (in.threads != NULL)
		return;
	log_init("fuzz_intake_link", LOG_LEVEL_ERROR);
	log_set_sink(silent);
	role.base = event_base_new();
	outbox = peer_new(
	    role.base, ROLE_INTAKE, ROLE_OUTBOX, "", &ledger_ops, NULL);
	in.role = &role;
	MUST(api_init(&in.api, &role, "http://127.0.0.1:1", "fuzz", &e) == 0);
	in.threads = threads_new(&in);
}

/*
 * Numbers of messages move with their table; those that matter here have a
 * number of their own in the corpus, which outlives that.
 */
static const enum msg_type named[] = {MSG_READ_THREAD, MSG_THREAD_IS,
    MSG_FAILED, MSG_UNDECIDED_WAITS, MSG_VERDICT_IS, MSG_TOKEN, MSG_PING};
#define NAMED_FIRST 0xff00

static void
put_types(uint8_t *bytes, size_t len)
{
	struct frame_header h;
	size_t name;

	while (len >= FRAME_HEADER_SIZE) {
		frame_header_read(bytes, &h);
		name = (size_t)h.type - NAMED_FIRST;
		if (h.type >= NAMED_FIRST &&
		    name < sizeof(named) / sizeof(named[0])) {
			bytes[0] = (uint8_t)named[name];
			bytes[1] = (uint8_t)(named[name] >> 8);
		}
		if (h.body_len > len - FRAME_HEADER_SIZE)
			return;
		bytes += FRAME_HEADER_SIZE + h.body_len;
		len -= FRAME_HEADER_SIZE + h.body_len;
	}
}

static void
write_hello(int fd)
{
	struct msg m = {.type = MSG_HELLO};
	struct frame f;
	struct error e;

	m.hello =
	    (struct msg_hello){PROTOCOL_VERSION, SCHEMA_VERSION, build_id};
	MUST(frame_encode(&m, &f, &e) == 0);
	MUST(write(fd, f.bytes, f.len) == (ssize_t)f.len);
	frame_free(&f);
}

/* A link to intake with these bytes already in it; returns the writer's end. */
static int
link_with(struct peer *peer, const uint8_t *bytes, size_t len)
{
	uint8_t *copy = xmemdup(bytes, len);
	int fds[2];

	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
		 fds) == 0);
	write_hello(fds[1]);
	put_types(copy, len);
	(void)!write(fds[1], copy, len);
	free(copy);
	peer_attach(peer, fds[0], 1);
	return fds[1];
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct peer *mcpd;
	size_t first;
	int from_mcpd, from_ledger, i;

	if (size < 2)
		return 0;
	set_up();
	first = (size_t)(data[0] | data[1] << 8);
	data += 2;
	size -= 2;
	first = first < size ? first : size;
	mcpd = peer_new(
	    role.base, ROLE_INTAKE, ROLE_MCPD, ATTEMPT, &mcpd_ops, NULL);
	in.ledger = peer_new(
	    role.base, ROLE_INTAKE, ROLE_LEDGER, "", &ledger_ops, NULL);
	from_mcpd = link_with(mcpd, data, first);
	from_ledger = link_with(in.ledger, data + first, size - first);
	for (i = 0; i < TURNS; i++)
		(void)event_base_loop(role.base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
	threads_forget(in.threads, mcpd);
	peer_free(mcpd);
	peer_free(in.ledger);
	(void)close(from_mcpd);
	(void)close(from_ledger);
	return 0;
}
