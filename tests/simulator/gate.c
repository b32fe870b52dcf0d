#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "tests/simulator/gate.h"

#define GATES_MAX 100

struct gate {
	int64_t id;
	char *pattern;
};

static struct gate gates[GATES_MAX];
static size_t gate_count;
static int64_t last_gate;

bool
gate_holds(const struct exchange *x)
{
	size_t i;

	for (i = 0; i < gate_count; i++) {
		if (pattern_matches(gates[i].pattern, x->method, x->path, NULL))
			return true;
	}
	return false;
}

json_t *
gate_list(void)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < gate_count; i++)
		json_array_append_new(list,
		    json_pack("{s:I,s:s}", "gate", (json_int_t)gates[i].id,
			"route", gates[i].pattern));
	return list;
}

void
steer_gate(struct exchange *x)
{
	const char *route =
	    json_string_value(json_object_get(x->body, "route"));

	if (route == NULL || !pattern_is_valid(route)) {
		answer_error(
		    x, HTTP_BADREQUEST, NULL, "route: not \"METHOD /path\"");
		return;
	}
	if (gate_count == GATES_MAX) {
		answer_error(x, HTTP_BADREQUEST, NULL, "too many gates");
		return;
	}
	gates[gate_count++] =
	    (struct gate){.id = ++last_gate, .pattern = xstrdup(route)};
	answer_json(
	    x, HTTP_OK, json_pack("{s:I}", "gate", (json_int_t)last_gate));
}

/* Open one gate by its number or its route; all when neither is given. */
void
steer_release(struct exchange *x)
{
	const char *route =
	    json_string_value(json_object_get(x->body, "route"));
	json_t *id = json_object_get(x->body, "gate");
	size_t at = 0, opened = 0;

	while (at < gate_count) {
		if ((id != NULL && json_integer_value(id) != gates[at].id) ||
		    (route != NULL && strcmp(route, gates[at].pattern) != 0)) {
			at++;
			continue;
		}
		free(gates[at].pattern);
		gates[at] = gates[--gate_count];
		opened++;
	}
	answer_json(x, HTTP_OK, json_pack("{s:i}", "opened", (int)opened));
	exchange_release_held();
}
