#include <event2/http.h>
#include <string.h>

#include "tests/simulator/exchange.h"
#include "tests/simulator/sim.h"
#include "tests/simulator/update.h"

#define PAGE_SIZE_MAX 1000

static struct row_table *member_table(const char *name);

static int
options_check(const struct member *m, json_t *value, struct error *e)
{
	json_t *size = json_object_get(value, "page_size");

	if (row_check(&options_type, value, e) == -1)
		return -1;
	if (size != NULL &&
	    (json_integer_value(size) < 1 ||
		json_integer_value(size) > PAGE_SIZE_MAX))
		return error_set(
		    e, "options.page_size: not 1 to %d", PAGE_SIZE_MAX);
	return 0;
}

static void
options_apply(const struct member *m, json_t *value)
{
	row_set(&options_type, &sim.options, value);
}

static int
remove_check(const struct member *m, json_t *value, struct error *e)
{
	const char *name;
	json_t *ids;

	if (!json_is_object(value))
		return error_set(e, "remove: not an object");
	json_object_foreach (value, name, ids) {
		if (member_table(name) == NULL || !json_is_array(ids))
			return error_set(e, "remove: not lists of ids");
	}
	return 0;
}

static void
remove_apply(const struct member *m, json_t *value)
{
	const char *name;
	json_t *ids, *id;
	size_t i;

	json_object_foreach (value, name, ids) {
		json_array_foreach (ids, i, id) {
			(void)row_remove(
			    member_table(name), json_integer_value(id));
		}
	}
}

/* In the order in which they are applied. */
static const struct member members[] = {
    {"remove", remove_check, remove_apply, NULL},
    {"people", rows_check, rows_apply, &world.people},
    {"projects", rows_check, rows_apply, &world.projects},
    {"recordings", rows_check, rows_apply, &world.recordings},
    {"boosts", rows_check, rows_apply, &world.boosts},
    {"clients", clients_check, clients_apply, NULL},
    {"token_lifetime", lifetime_check, lifetime_apply, NULL},
    {"revoke_tokens", revoke_check, revoke_apply, NULL},
    {"tokens", tokens_check, tokens_apply, NULL},
    {"options", options_check, options_apply, NULL},
};

#define MEMBERS (sizeof(members) / sizeof(members[0]))

/* NULL when NAME is no member that has rows. */
static struct row_table *
member_table(const char *name)
{
	size_t i;

	for (i = 0; i < MEMBERS; i++) {
		if (strcmp(members[i].name, name) == 0)
			return members[i].table;
	}
	return NULL;
}

static int
update_check(json_t *body, struct error *e)
{
	const char *name;
	json_t *value;
	size_t i;

	json_object_foreach (body, name, value) {
		for (i = 0; i < MEMBERS; i++) {
			if (strcmp(members[i].name, name) == 0)
				break;
		}
		if (i == MEMBERS)
			return error_set(e, "no member \"%.40s\"", name);
		if (members[i].check(&members[i], value, e) == -1)
			return -1;
	}
	return 0;
}

void
steer_world(struct exchange *x)
{
	struct error e;
	json_t *value;
	size_t i;

	if (update_check(x->body, &e) == -1) {
		answer_error(x, HTTP_BADREQUEST, NULL, "%s", e.text);
		return;
	}
	for (i = 0; i < MEMBERS; i++) {
		value = json_object_get(x->body, members[i].name);
		if (value != NULL)
			members[i].apply(&members[i], value);
	}
	answer_json(x, HTTP_OK, json_pack("{s:b}", "ok", 1));
}

static json_t *
table_json(const struct row_table *table)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < table->count; i++)
		json_array_append_new(
		    list, row_json(table->type, table->rows[i]));
	return list;
}

void
steer_world_show(struct exchange *x)
{
	json_t *o = json_object();

	json_object_set_new(o, "people", table_json(&world.people));
	json_object_set_new(o, "projects", table_json(&world.projects));
	json_object_set_new(o, "recordings", table_json(&world.recordings));
	json_object_set_new(o, "boosts", table_json(&world.boosts));
	json_object_set_new(o, "clients", table_json(&world.clients));
	json_object_set_new(
	    o, "options", row_json(&options_type, &sim.options));
	answer_json(x, HTTP_OK, o);
}
