#include "tests/simulator/auth.h"
#include "tests/simulator/update.h"

#define CLIENTS_MAX 1000

int
clients_check(const struct member *m, json_t *value, struct error *e)
{
	json_t *row;
	size_t i;

	if (!json_is_array(value) || json_array_size(value) > CLIENTS_MAX)
		return error_set(e, "clients: not a list");
	json_array_foreach (value, i, row) {
		if (row_check(&client_type, row, e) == -1)
			return -1;
		if (!json_is_string(json_object_get(row, "client_id")))
			return error_set(e, "clients: without client_id");
	}
	return 0;
}

void
clients_apply(const struct member *m, json_t *value)
{
	struct client *client;
	json_t *from;
	size_t i;

	json_array_foreach (value, i, from) {
		client = world_client(
		    json_string_value(json_object_get(from, "client_id")));
		if (client == NULL) {
			client = row_new(&client_type);
			client->id = row_last(&world.clients) + 1;
			text_replace(&client->scope, AUTH_SCOPE_FULL);
			row_insert(&world.clients, client);
		}
		row_set(&client_type, client, from);
	}
}

int
tokens_check(const struct member *m, json_t *value, struct error *e)
{
	json_t *row, *scope;
	size_t i;

	if (!json_is_array(value))
		return error_set(e, "tokens: not a list");
	json_array_foreach (value, i, row) {
		scope = json_object_get(row, "scope");
		if (!json_is_string(json_object_get(row, "token")) ||
		    json_integer_value(json_object_get(row, "person_id")) <=
			0 ||
		    (scope != NULL && !json_is_string(scope)))
			return error_set(
			    e, "tokens: a row is token, person_id, scope");
	}
	return 0;
}

void
tokens_apply(const struct member *m, json_t *value)
{
	const char *scope;
	json_t *row;
	size_t i;

	json_array_foreach (value, i, row) {
		scope = json_string_value(json_object_get(row, "scope"));
		auth_grant(json_string_value(json_object_get(row, "token")),
		    json_integer_value(json_object_get(row, "person_id")),
		    scope == NULL ? AUTH_SCOPE_FULL : scope, "");
	}
}

int
lifetime_check(const struct member *m, json_t *value, struct error *e)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > INT32_MAX)
		return error_set(e, "token_lifetime: not seconds");
	return 0;
}

void
lifetime_apply(const struct member *m, json_t *value)
{
	size_t i;

	for (i = 0; i < world.clients.count; i++)
		((struct client *)world.clients.rows[i])->token_lifetime =
		    json_integer_value(value);
}

/* true: what clients have minted; a list: those tokens. */
int
revoke_check(const struct member *m, json_t *value, struct error *e)
{
	json_t *token;
	size_t i;

	if (!json_is_true(value) && !json_is_array(value))
		return error_set(e, "revoke_tokens: not true or a list");
	json_array_foreach (value, i, token) {
		if (!json_is_string(token))
			return error_set(e, "revoke_tokens: not strings");
	}
	return 0;
}

void
revoke_apply(const struct member *m, json_t *value)
{
	const struct client *client;
	json_t *token;
	size_t i;

	json_array_foreach (value, i, token) {
		(void)auth_revoke(json_string_value(token), NULL);
	}
	if (!json_is_true(value))
		return;
	for (i = 0; i < world.clients.count; i++) {
		client = world.clients.rows[i];
		(void)auth_revoke(NULL, client->client_id);
	}
}
