/*
 * The control socket's lines, in the hands of somebody who may only read:
 * nothing is changed, every answer is a line of JSON, and no bytes end more
 * than this connection.
 */
#include <sys/socket.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/log.h"
#include "supervisor/child.h"
#include "supervisor/client.h"
#include "supervisor/status.h"
#include "supervisor/watchdog.h"
#include "tests/fuzz/fuzz.h"

#define TURNS_MAX 400

static struct supervisor sv;
static struct child ledger;
static const peer_handler no_handlers[MSG_COUNT];
static const struct peer_ops ops = {.handlers = no_handlers};

/* ---- what no reader may reach -------------------------------------------- */

void
supervisor_stop(struct supervisor *s, int signal)
{
	(void)s;
	(void)signal;
	abort();
}

int
supervisor_reload(struct supervisor *s, struct error *e)
{
	(void)s;
	(void)e;
	abort();
}

void
child_happens(struct child *c, enum child_event event)
{
	(void)c;
	(void)event;
	abort();
}

enum fate
attempts_fate(const struct supervisor *s, const char *attempt)
{
	(void)s;
	(void)attempt;
	abort();
}

bool
attempts_had(const struct supervisor *s, const char *attempt)
{
	(void)s;
	(void)attempt;
	abort();
}

bool
attempts_signaled(
    const struct supervisor *s, const char *attempt, bool *was_signaled)
{
	(void)s;
	(void)attempt;
	(void)was_signaled;
	abort();
}

const char *
recovery_finds(const struct supervisor *s, const char *attempt,
    const struct msg_identity_is *known)
{
	(void)s;
	(void)attempt;
	(void)known;
	abort();
}

void
attempts_settled(struct supervisor *s, const char *attempt)
{
	(void)s;
	(void)attempt;
	abort();
}

/* ---- what it may --------------------------------------------------------- */

void
status_write(
    const struct supervisor *s, struct buffer *b, const char *part, size_t len)
{
	(void)s;
	MUST(part == NULL && len == 0);
	buffer_add_text(b, "{}");
}

const char *
child_state_name(const struct child *c)
{
	(void)c;
	return "ready";
}

struct child *
child_of_peer(struct supervisor *s, const struct peer *peer)
{
	(void)peer;
	return s->children[ROLE_LEDGER];
}

void
watchdog_ask(struct supervisor *s)
{
	(void)s;
}

void
watchdog_stir(struct supervisor *s)
{
	(void)s;
}

/* ---- the target ---------------------------------------------------------- */

static void
drop_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void
set_up(void)
{
	if (sv.base != NULL)
		return;
	log_set_sink(drop_log);
	sv.base = event_base_new();
	ledger.state = CHILD_BACKOFF; /* there is nobody to ask */
	ledger.peer =
	    peer_new(sv.base, ROLE_SUPERVISOR, ROLE_LEDGER, "", &ops, NULL);
	sv.children[ROLE_LEDGER] = &ledger;
}

/* What came back: whole lines, each an object. */
static void
check_answers(const char *bytes, size_t len)
{
	const struct json_rules rules = {
	    .max_bytes = 65536, .max_depth = 8, .max_members = 100};
	const char *end;
	json_t *value;

	while (len > 0 && (end = memchr(bytes, '\n', len)) != NULL) {
		value = json_read(bytes, (size_t)(end - bytes), &rules, NULL);
		MUST(json_is_object(value));
		json_decref(value);
		len -= (size_t)(end - bytes) + 1;
		bytes = end + 1;
	}
	MUST(len == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char answers[1024 * 1024];
	struct client_list list;
	size_t done = 0, got = 0;
	ssize_t n = 1;
	int pair[2], turn;

	set_up();
	TAILQ_INIT(&list);
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
	(void)client_new(&sv, &list, pair[0], 1, CONTROL_READ);
	for (turn = 0; turn < TURNS_MAX && n != 0; turn++) {
		if (done < size) {
			n = send(
			    pair[1], data + done, size - done, MSG_NOSIGNAL);
			done += n > 0 ? (size_t)n : size - done;
		} else if (turn % 8 == 7) {
			(void)shutdown(pair[1], SHUT_WR);
		}
		(void)event_base_loop(sv.base, EVLOOP_NONBLOCK);
		n = read(pair[1], answers + got, sizeof(answers) - got);
		got += n > 0 ? (size_t)n : 0;
	}
	if (n == 0)
		check_answers(answers, got);
	(void)close(pair[1]);
	(void)event_base_loop(sv.base, EVLOOP_NONBLOCK);
	while (!TAILQ_EMPTY(&list))
		client_free(TAILQ_FIRST(&list));
	return 0;
}
