#include <assert.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/keyvalq_struct.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "common/xmalloc.h"
#include "tests/simulator/auth.h"
#include "tests/simulator/await.h"
#include "tests/simulator/exchange.h"
#include "tests/simulator/fault.h"
#include "tests/simulator/gate.h"
#include "tests/simulator/journal.h"
#include "tests/simulator/sim.h"

static TAILQ_HEAD(, exchange) exchanges = TAILQ_HEAD_INITIALIZER(exchanges);

static void exchange_conclude(struct exchange *x);
static void exchange_timer(int fd, short what, void *arg);

static const struct {
	enum evhttp_cmd_type type;
	const char *name;
} methods[] = {
    {EVHTTP_REQ_GET, "GET"},
    {EVHTTP_REQ_POST, "POST"},
    {EVHTTP_REQ_PUT, "PUT"},
    {EVHTTP_REQ_DELETE, "DELETE"},
    {EVHTTP_REQ_HEAD, "HEAD"},
    {EVHTTP_REQ_PATCH, "PATCH"},
    {EVHTTP_REQ_OPTIONS, "OPTIONS"},
};

static const char *
method_name(const struct evhttp_request *req)
{
	size_t i;

	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (methods[i].type == evhttp_request_get_command(req))
			return methods[i].name;
	}
	return "OTHER";
}

const char *
exchange_header(const struct exchange *x, const char *name)
{
	return evhttp_find_header(
	    evhttp_request_get_input_headers(x->req), name);
}

const char *
exchange_query(const struct exchange *x, const char *key)
{
	return json_string_value(json_object_get(x->query, key));
}

bool
exchange_is_type(const struct exchange *x, const char *type)
{
	const char *value = exchange_header(x, "Content-Type");
	size_t len = strlen(type);

	if (value == NULL || strncasecmp(value, type, len) != 0)
		return false;
	return strchr("; \t", value[len]) != NULL;
}

static bool
is_steering(const struct exchange *x)
{
	return x->route != NULL && (x->route->flags & ROUTE_STEER) != 0;
}

/* A body of neither kind stays in evhttp's buffer, for the journal. */
static void
exchange_read_body(struct exchange *x)
{
	struct evbuffer *input = evhttp_request_get_input_buffer(x->req);
	size_t len = evbuffer_get_length(input);
	const char *bytes = (const char *)evbuffer_pullup(input, -1);

	if (is_steering(x) && len == 0)
		x->body = json_object();
	else if (is_steering(x) || exchange_is_type(x, "application/json"))
		x->body = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, NULL);
	else if (exchange_is_type(x, "application/x-www-form-urlencoded"))
		x->form = params_parse(bytes, len);
}

static struct exchange *
exchange_new(struct evhttp_request *req)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *path = evhttp_uri_get_path(uri);
	const char *query = evhttp_uri_get_query(uri);
	struct exchange *x = xcalloc(1, sizeof(*x));

	x->req = req;
	x->method = method_name(req);
	x->path = xstrdup(path == NULL ? "" : path);
	x->query = params_parse(
	    query == NULL ? "" : query, query == NULL ? 0 : strlen(query));
	x->route = route_find(x->method, x->path, x->ids);
	x->timer = event_new(sim.base, -1, 0, exchange_timer, x);
	exchange_read_body(x);
	TAILQ_INSERT_TAIL(&exchanges, x, link);
	return x;
}

static void
exchange_free(struct exchange *x)
{
	TAILQ_REMOVE(&exchanges, x, link);
	if (x->gone != NULL)
		event_free(x->gone);
	event_free(x->timer);
	json_decref(x->query);
	json_decref(x->form);
	json_decref(x->body);
	json_decref(x->effect.headers);
	json_decref(x->effect.body);
	answer_free(&x->answer);
	free(x->path);
	free(x);
}

/* Close the connection without another byte. Never inside evhttp's callback:
 * it goes on to use the connection. */
static void
exchange_drop(struct exchange *x)
{
	struct evhttp_connection *connection =
	    evhttp_request_get_connection(x->req);

	exchange_free(x);
	evhttp_connection_free(connection);
}

static void
exchange_gone(int fd, short what, void *arg)
{
	struct exchange *x = arg;

	if (x->stage == STAGE_HELD)
		journal_answered(x->entry, HTTP_SERVUNAVAIL);
	if (x->stage == STAGE_WAITING)
		x->over(x, true);
	exchange_drop(x);
	await_changed();
}

/* evhttp does not read while a request is being answered, so that it would
 * not see the client leave. */
static void
exchange_watch(struct exchange *x, enum exchange_stage stage)
{
	struct bufferevent *bev = evhttp_connection_get_bufferevent(
	    evhttp_request_get_connection(x->req));

	x->stage = stage;
	if (x->gone != NULL)
		return;
	x->gone = event_new(
	    sim.base, bufferevent_getfd(bev), EV_CLOSED, exchange_gone, x);
	event_add(x->gone, NULL);
}

static void
exchange_arm(struct exchange *x, int64_t ms)
{
	struct timeval wait = {.tv_sec = (time_t)(ms / 1000),
	    .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

	event_add(x->timer, &wait);
}

static void
exchange_end(struct exchange *x)
{
	x->stage = STAGE_ENDING;
	exchange_arm(x, 0);
}

static void
exchange_timer(int fd, short what, void *arg)
{
	struct exchange *x = arg;

	if (x->stage == STAGE_ENDING)
		exchange_drop(x);
	else if (x->stage == STAGE_WAITING)
		x->over(x, false);
	else
		exchange_conclude(x);
}

void
exchange_wait(
    struct exchange *x, int64_t ms, void (*over)(struct exchange *x, bool left))
{
	exchange_watch(x, STAGE_WAITING);
	x->over = over;
	exchange_arm(x, ms);
}

void
exchange_finish(struct exchange *x)
{
	/* evhttp reads the socket again from here on. */
	if (x->gone != NULL)
		event_del(x->gone);
	journal_answered(x->entry, x->answer.status);
	answer_deliver(x);
	exchange_free(x);
	await_changed();
}

/* What every request of Basecamp's is held against before its handler. */
static bool
exchange_is_refused(struct exchange *x)
{
	if (is_steering(x)) {
		if (!json_is_object(x->body))
			answer_error(x, HTTP_BADREQUEST, NULL,
			    "the body is not a JSON object");
		return !json_is_object(x->body);
	}
	if (exchange_header(x, "User-Agent") == NULL ||
	    *exchange_header(x, "User-Agent") == '\0') {
		answer_text(x, HTTP_BADREQUEST, "text/plain",
		    "Please identify yourself with a User-Agent header.\n");
		return true;
	}
	if (x->route == NULL) {
		journal_report("no such route: %s %s", x->method, x->path);
		answer_empty(x, HTTP_NOTFOUND);
		return true;
	}
	return auth_refuses(x);
}

static void
exchange_handle(struct exchange *x)
{
	if (!exchange_is_refused(x))
		x->route->handle(x);
}

static void
effect_none(struct exchange *x)
{
	exchange_finish(x);
}

static void
effect_answer(struct exchange *x)
{
	answer_replace(x);
	exchange_finish(x);
}

static void
effect_drop(struct exchange *x)
{
	exchange_end(x);
}

static void
effect_hang(struct exchange *x)
{
	exchange_watch(x, STAGE_HUNG);
}

/* So few bytes always fit into a fresh socket's buffer. */
static void
effect_wire(struct exchange *x)
{
	static const char noise[] = "\x15\x03\x01 this is not HTTP\r\n\r\n";
	struct bufferevent *bev = evhttp_connection_get_bufferevent(
	    evhttp_request_get_connection(x->req));

	(void)send(bufferevent_getfd(bev), noise, sizeof(noise) - 1,
	    MSG_NOSIGNAL | MSG_DONTWAIT);
	exchange_end(x);
}

static void (*const effects[])(struct exchange *x) = {
    [FAULT_NONE] = effect_none,
    [FAULT_ANSWER] = effect_answer,
    [FAULT_DROP] = effect_drop,
    [FAULT_HANG] = effect_hang,
    [FAULT_GARBAGE] = effect_answer,
    [FAULT_WIRE] = effect_wire,
};
static_assert(sizeof(effects) / sizeof(effects[0]) == FAULT_WIRE + 1,
    "an effect for each mode");

static void
exchange_conclude(struct exchange *x)
{
	if (!x->effect.after && x->effect.mode == FAULT_NONE)
		exchange_handle(x);
	effects[x->effect.mode](x);
}

/* The gates are open: the fault, if any, decides what happens when. */
static void
exchange_run(struct exchange *x)
{
	fault_take(x);
	if (x->effect.after)
		exchange_handle(x);
	if (x->effect.delay_ms == 0) {
		exchange_conclude(x);
		return;
	}
	exchange_watch(x, STAGE_DELAYED);
	exchange_arm(x, x->effect.delay_ms);
}

void
exchange_begin(struct evhttp_request *req, void *unused)
{
	struct exchange *x = exchange_new(req);

	if (is_steering(x)) {
		exchange_handle(x);
		if (x->stage == STAGE_ARRIVED)
			exchange_finish(x);
		return;
	}
	auth_identify(x);
	x->entry = journal_add(x);
	if (gate_holds(x))
		exchange_watch(x, STAGE_HELD);
	else
		exchange_run(x);
	await_changed();
}

void
exchange_release_held(void)
{
	struct exchange *x, *next;

	for (x = TAILQ_FIRST(&exchanges); x != NULL; x = next) {
		next = TAILQ_NEXT(x, link);
		if (x->stage == STAGE_HELD && !gate_holds(x))
			exchange_run(x);
	}
}

size_t
exchange_count_held(void)
{
	const struct exchange *x;
	size_t count = 0;

	TAILQ_FOREACH (x, &exchanges, link)
		count += x->stage == STAGE_HELD;
	return count;
}

void
exchange_drop_hung(void)
{
	struct exchange *x, *next;

	for (x = TAILQ_FIRST(&exchanges); x != NULL; x = next) {
		next = TAILQ_NEXT(x, link);
		if (x->stage == STAGE_HUNG)
			exchange_end(x);
		else if (x->stage == STAGE_DELAYED)
			exchange_arm(x, 0);
	}
}
