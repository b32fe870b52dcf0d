/* The members of POST /sim/world, by the file that has them. */
#ifndef SIMULATOR_UPDATE_H
#define SIMULATOR_UPDATE_H

#include "tests/simulator/world.h"

/*
 * All members are checked before any is applied, so that a broken update
 * changes nothing. CHECK returns 0, or -1 with E; APPLY cannot fail.
 */
struct member {
	const char *name;
	int (*check)(const struct member *m, json_t *value, struct error *e);
	void (*apply)(const struct member *m, json_t *value);
	struct row_table *table; /* of those that are rows */
};

/* update_rows.c */
int rows_check(const struct member *m, json_t *value, struct error *e);
void rows_apply(const struct member *m, json_t *value);

/* update_access.c */
int clients_check(const struct member *m, json_t *value, struct error *e);
void clients_apply(const struct member *m, json_t *value);
int tokens_check(const struct member *m, json_t *value, struct error *e);
void tokens_apply(const struct member *m, json_t *value);
int lifetime_check(const struct member *m, json_t *value, struct error *e);
void lifetime_apply(const struct member *m, json_t *value);
int revoke_check(const struct member *m, json_t *value, struct error *e);
void revoke_apply(const struct member *m, json_t *value);

#endif
