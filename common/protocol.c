#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/protocol.h"

static const char *const role_names[] = {
    [ROLE_SUPERVISOR] = "supervisor",
    [ROLE_LEDGER] = "ledger",
    [ROLE_DISPATCHER] = "dispatcher",
    [ROLE_OUTBOX] = "outbox",
    [ROLE_INTAKE] = "intake",
    [ROLE_MCPD] = "mcpd",
};
static_assert(sizeof(role_names) / sizeof(role_names[0]) == ROLE_COUNT,
    "every role has a name");

const char *
role_name(enum role_id role)
{
	return role_names[role];
}

enum role_id
role_by_name(const char *name)
{
	int role;

	for (role = 0; role < ROLE_COUNT; role++) {
		if (strcmp(role_names[role], name) == 0)
			return (enum role_id)role;
	}
	return ROLE_COUNT;
}

/* ---- the table -------------------------------------------------------- */

#define PARTY_SUPERVISOR (1U << ROLE_SUPERVISOR)
#define PARTY_LEDGER (1U << ROLE_LEDGER)
#define PARTY_DISPATCHER (1U << ROLE_DISPATCHER)
#define PARTY_OUTBOX (1U << ROLE_OUTBOX)
#define PARTY_INTAKE (1U << ROLE_INTAKE)
#define PARTY_MCPD (1U << ROLE_MCPD)
#define PARTY_ANY ((1U << ROLE_COUNT) - 1)
#define PARTY_CHILDREN (PARTY_ANY & ~PARTY_SUPERVISOR)
/*
 * Who takes records in hand: an mcpd has those of its task only, the outbox
 * none. The supervisor sees with what in hand they die.
 */
#define PARTY_MOVERS (PARTY_DISPATCHER | PARTY_INTAKE)
#define PARTY_WITNESSES (PARTY_SUPERVISOR | PARTY_MOVERS)

#define FIELD(m, f, kind, class, least, most) \
	{#f, FIELD_##kind, FD_##class, offsetof(struct msg, m.f), least, most},

/* The rows of each message's fields; an empty list ends in a blank row. */
#define MESSAGE(NAME, name, kind, from, to, reply, key) \
	static const struct msg_field fields_##name[] = {
#define I64(m, f, least, most) FIELD(m, f, I64, NOT, least, most)
#define OPT(m, f, least, most) FIELD(m, f, OPT, NOT, least, most)
#define BOOL(m, f) FIELD(m, f, BOOL, NOT, 0, 1)
#define STR(m, f, least, most) FIELD(m, f, STR, NOT, least, most)
#define LARGE(m, f, most) FIELD(m, f, LARGE, NOT, 0, most)
#define IDS(m, f, most) FIELD(m, f, IDS, NOT, 0, most)
#define FD(m, f, class) FIELD(m, f, FD, class, 0, 0)
#define END(m) \
	}      \
	;
#include "common/protocol.def"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct msg_info infos[] = {
    [MSG_NONE] = {"NONE", MSG_NOTICE, 0, 0, MSG_NONE, "", NULL, 0},
#define MESSAGE(NAME, name, kind, from, to, reply, key)              \
	[MSG_##NAME] = {#NAME, MSG_##kind, PARTY_##from, PARTY_##to, \
	    MSG_##reply, key, fields_##name, COUNT(fields_##name)},
#include "common/protocol.def"
};
static_assert(COUNT(infos) == MSG_COUNT, "every message has a row");

const struct msg_info *
msg_info(int type)
{
	return type > MSG_NONE && type < MSG_COUNT ? &infos[type] : NULL;
}

const char *
msg_name(int type)
{
	const struct msg_info *info = msg_info(type);

	return info == NULL ? "?" : info->name;
}

bool
msg_permitted(int type, enum role_id from, enum role_id to)
{
	const struct msg_info *info = msg_info(type);

	return info != NULL && (info->from >> from & 1) != 0 &&
	    (info->to >> to & 1) != 0;
}

bool
msg_is_request(int type)
{
	const struct msg_info *info = msg_info(type);

	return info != NULL &&
	    (info->kind == MSG_REQUEST || info->kind == MSG_FACT);
}

/* ---- a message's descriptors and memory --------------------------------- */

void
msg_close(struct msg *m)
{
	const struct msg_info *info = msg_info(m->type);
	size_t i;
	int *fd;

	for (i = 0; i < info->field_count; i++) {
		if (info->fields[i].kind != FIELD_FD)
			continue;
		fd = (int *)((char *)m + info->fields[i].offset);
		if (*fd >= 0)
			(void)close(*fd);
		*fd = -1;
	}
}

void
msg_free(struct msg *m)
{
	size_t i;

	if (m == NULL)
		return;
	msg_close(m);
	for (i = 0; i < MSG_STORAGE_MAX; i++)
		free(m->storage[i]);
	free(m);
}
