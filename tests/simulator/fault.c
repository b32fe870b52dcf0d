#include <event2/http.h>
#include <string.h>

#include "common/xmalloc.h"
#include "tests/simulator/fault.h"
#include "tests/simulator/rows.h"
#include "tests/simulator/world.h"

#define FAULTS_MAX 1000
#define DELAY_MS_MAX 600000
#define PAD_MAX (128 * 1024 * 1024)

/* As it was asked for; times 0 is until removed, status 0 is none. */
struct fault {
	int64_t id;
	int64_t hits;
	char *route;
	json_t *routes;
	bool agents; /* only an agent's requests */
	int64_t times;
	int64_t status;
	json_t *headers;
	json_t *body;
	char *when;
	bool half;
	json_t *garbage; /* true, or "wire" */
	bool hang;
	bool drop;
	int64_t delay_ms;
	int64_t pad;
};

static const struct row_field fault_fields[] = {
    {"route", ROW_TEXT, offsetof(struct fault, route)},
    {"routes", ROW_JSON, offsetof(struct fault, routes)},
    {"agents", ROW_FLAG, offsetof(struct fault, agents)},
    {"times", ROW_NUMBER, offsetof(struct fault, times)},
    {"status", ROW_NUMBER, offsetof(struct fault, status)},
    {"headers", ROW_JSON, offsetof(struct fault, headers)},
    {"body", ROW_JSON, offsetof(struct fault, body)},
    {"when", ROW_TEXT, offsetof(struct fault, when)},
    {"half", ROW_FLAG, offsetof(struct fault, half)},
    {"garbage", ROW_JSON, offsetof(struct fault, garbage)},
    {"hang", ROW_FLAG, offsetof(struct fault, hang)},
    {"drop", ROW_FLAG, offsetof(struct fault, drop)},
    {"delay_ms", ROW_NUMBER, offsetof(struct fault, delay_ms)},
    {"pad", ROW_NUMBER, offsetof(struct fault, pad)},
};
static const struct row_type fault_type = {"fault", sizeof(struct fault),
    fault_fields, sizeof(fault_fields) / sizeof(fault_fields[0]), NULL};

static struct row_table faults = {.type = &fault_type};
static int64_t last_fault, lost_hits;

static bool
fault_is_spent(const struct fault *f)
{
	return f->times != 0 && f->hits >= f->times;
}

static bool
fault_matches(const struct fault *f, const struct exchange *x)
{
	const struct person *caller = world_person(x->caller);
	const char *pattern;
	json_t *route;
	size_t i;

	if (fault_is_spent(f))
		return false;
	if (f->agents && (caller == NULL || !caller->agent))
		return false;
	if (*f->route != '\0' &&
	    pattern_matches(f->route, x->method, x->path, NULL))
		return true;
	json_array_foreach (f->routes, i, route) {
		pattern = json_string_value(route);
		if (pattern_matches(pattern, x->method, x->path, NULL))
			return true;
	}
	return false;
}

static enum fault_mode
fault_mode(const struct fault *f)
{
	if (f->drop)
		return FAULT_DROP;
	if (f->hang)
		return FAULT_HANG;
	if (json_is_string(f->garbage))
		return FAULT_WIRE;
	if (json_is_true(f->garbage))
		return FAULT_GARBAGE;
	if (f->status != 0)
		return FAULT_ANSWER;
	if (f->half || f->delay_ms != 0 || f->pad != 0)
		return FAULT_NONE;
	return FAULT_DROP;
}

static void
effect_set(struct fault_effect *effect, const struct fault *f)
{
	effect->mode = fault_mode(f);
	effect->after = strcmp(f->when, "after") == 0;
	effect->half = f->half;
	effect->delay_ms = f->delay_ms;
	effect->pad = f->pad;
	effect->status = (int)f->status;
	effect->headers = json_incref(f->headers);
	effect->body = json_incref(f->body);
}

void
fault_take(struct exchange *x)
{
	struct fault *f;
	size_t i;

	for (i = faults.count; i > 0; i--) {
		f = faults.rows[i - 1];
		if (!fault_matches(f, x))
			continue;
		f->hits++;
		effect_set(&x->effect, f);
		return;
	}
}

int64_t
fault_count_hits(int64_t id)
{
	const struct fault *f;
	int64_t hits = id == 0 ? lost_hits : 0;
	size_t i;

	for (i = 0; i < faults.count; i++) {
		f = faults.rows[i];
		if (id == 0 || f->id == id)
			hits += f->hits;
	}
	return hits;
}

json_t *
fault_list(void)
{
	const struct fault *f;
	json_t *list = json_array(), *row;
	size_t i;

	for (i = 0; i < faults.count; i++) {
		f = faults.rows[i];
		row = row_json(&fault_type, f);
		json_object_set_new(row, "fault", json_integer(f->id));
		json_object_set_new(row, "hits", json_integer(f->hits));
		json_array_append_new(list, row);
	}
	return list;
}

/* Header names and values go onto the wire as they are. */
static bool
headers_are_valid(json_t *headers)
{
	const char *name, *text;
	json_t *value;

	if (headers != NULL && !json_is_object(headers))
		return false;
	json_object_foreach (headers, name, value) {
		text = json_string_value(value);
		if (text == NULL || strpbrk(text, "\r\n") != NULL)
			return false;
		if (*name == '\0' || strpbrk(name, "\r\n: ") != NULL)
			return false;
	}
	return true;
}

static bool
routes_are_valid(const struct fault *f)
{
	const char *text;
	json_t *route;
	size_t i;

	json_array_foreach (f->routes, i, route) {
		text = json_string_value(route);
		if (text == NULL || !pattern_is_valid(text))
			return false;
	}
	if (*f->route == '\0')
		return json_array_size(f->routes) > 0;
	return pattern_is_valid(f->route);
}

static int
fault_check(const struct fault *f, struct error *e)
{
	if (!routes_are_valid(f))
		return error_set(e, "route: not \"METHOD /path\"");
	if (f->status != 0 && (f->status < 200 || f->status > 599))
		return error_set(e, "status: not 200 to 599");
	if (!headers_are_valid(f->headers))
		return error_set(e, "headers: not names and plain strings");
	if (f->delay_ms > DELAY_MS_MAX)
		return error_set(e, "delay_ms: more than ten minutes");
	if (f->pad > PAD_MAX)
		return error_set(e, "pad: more than 128 MiB");
	if (*f->when != '\0' && strcmp(f->when, "before") != 0 &&
	    strcmp(f->when, "after") != 0)
		return error_set(e, "when: not before or after");
	if (json_is_string(f->garbage) &&
	    strcmp(json_string_value(f->garbage), "wire") != 0)
		return error_set(e, "garbage: not true or \"wire\"");
	if (f->status == 0 && (f->body != NULL || f->headers != NULL))
		return error_set(e, "body and headers need a status");
	if (faults.count == FAULTS_MAX)
		return error_set(e, "too many faults: clear them");
	return 0;
}

void
steer_fault(struct exchange *x)
{
	struct fault *f = row_new(&fault_type);
	struct error e;

	if (row_check(&fault_type, x->body, &e) == -1) {
		row_free(&fault_type, f);
		answer_error(x, HTTP_BADREQUEST, NULL, "%s", e.text);
		return;
	}
	row_set(&fault_type, f, x->body);
	if (fault_check(f, &e) == -1) {
		row_free(&fault_type, f);
		answer_error(x, HTTP_BADREQUEST, NULL, "%s", e.text);
		return;
	}
	f->id = ++last_fault;
	row_insert(&faults, f);
	answer_json(x, HTTP_OK, json_pack("{s:I}", "fault", (json_int_t)f->id));
}

void
steer_fault_remove(struct exchange *x)
{
	lost_hits += fault_count_hits(x->ids[0]);
	if (row_remove(&faults, x->ids[0]))
		answer_json(x, HTTP_OK, json_pack("{s:b}", "ok", 1));
	else
		answer_error(x, HTTP_NOTFOUND, NULL, "no such fault");
}

void
steer_fault_clear(struct exchange *x)
{
	size_t removed = faults.count;

	lost_hits = fault_count_hits(0);
	while (faults.count > 0)
		(void)row_remove(&faults, row_last(&faults));
	exchange_drop_hung();
	answer_json(x, HTTP_OK, json_pack("{s:i}", "removed", (int)removed));
}
