/*
 * The messages of connectd, derived from the one table in protocol.def: their
 * structs, and who may send what to whom (design 3). How they are encoded:
 * common/frame.
 */
#ifndef COMMON_PROTOCOL_H
#define COMMON_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define PROTOCOL_VERSION 1
#define SCHEMA_VERSION 1 /* of ledger.db */

/* READ_THREADs of one task that intake takes on at once; mcpd's others wait. */
#define READS_MOST 4
/* REFUSED.note of what the outbox does not post; mcpd knows it in POST_IS. */
#define NOTE_HOLDS_CREDENTIAL "refused; it holds a credential"

/* In the order in which accusations count: each may accuse those below. */
enum role_id {
	ROLE_SUPERVISOR,
	ROLE_LEDGER,
	ROLE_DISPATCHER,
	ROLE_OUTBOX,
	ROLE_INTAKE,
	ROLE_MCPD,
	ROLE_COUNT
};

/* "supervisor", "ledger", ...; never NULL for a role below ROLE_COUNT. */
const char *role_name(enum role_id role);
/* The role of that name, or ROLE_COUNT. */
enum role_id role_by_name(const char *name);

enum msg_type {
	MSG_NONE,
#define MESSAGE(NAME, name, kind, from, to, reply, key) MSG_##NAME,
#include "common/protocol.def"
	MSG_COUNT
};

/* An integer that may be absent; value is 0 then. */
struct opt {
	bool has;
	int64_t value;
};

/* Bytes with a length; NULL with len 0 is empty. */
struct blob {
	const void *bytes;
	size_t len;
};

struct ids {
	const int64_t *list;
	size_t count;
};

/*
 * One struct per message, struct msg_<name>. STR fields are NUL-terminated
 * and hold no other NUL; they are never NULL in a decoded message, and NULL
 * is sent as "". FD fields are -1 when taken.
 */
#define MESSAGE(NAME, name, kind, from, to, reply, key) struct msg_##name {
#define I64(m, f, least, most) int64_t f;
#define OPT(m, f, least, most) struct opt f;
#define BOOL(m, f) bool f;
#define STR(m, f, least, most) const char *f;
#define LARGE(m, f, most) struct blob f;
#define IDS(m, f, most) struct ids f;
#define FD(m, f, class) int f;
#define END(m) \
	}      \
	;
#include "common/protocol.def"

#define MSG_STORAGE_MAX 4

struct msg {
	enum msg_type type;
	uint64_t request; /* id of the request, or of the one answered; 0 */
	union {
#define MESSAGE(NAME, name, kind, from, to, reply, key) struct msg_##name name;
#include "common/protocol.def"
	};
	size_t size;                    /* of the frame; decoded ones only */
	void *storage[MSG_STORAGE_MAX]; /* what the fields point into */
};

enum msg_kind { MSG_NOTICE, MSG_FACT, MSG_REQUEST, MSG_REPLY };

enum field_kind {
	FIELD_I64,
	FIELD_OPT,
	FIELD_BOOL,
	FIELD_STR,
	FIELD_LARGE,
	FIELD_IDS,
	FIELD_FD
};

enum fd_class { FD_NOT, FD_SOCKET, FD_PIPE_READ, FD_PIPE_WRITE, FD_PIDFD };

struct msg_field {
	const char *name;
	enum field_kind kind;
	enum fd_class fd_class;
	size_t offset; /* in struct msg */
	int64_t least;
	int64_t most;
};

struct msg_info {
	const char *name; /* "RECORD" */
	enum msg_kind kind;
	unsigned int from, to; /* bits, 1 << enum role_id */
	enum msg_type reply;   /* of a FACT or REQUEST */
	const char *key;       /* of a repeat; "" where nothing is changed */
	const struct msg_field *fields;
	size_t field_count;
};

/* The row of a type; NULL for a number that is none. */
const struct msg_info *msg_info(int type);
/* A printable name for any number, "?" for none. */
const char *msg_name(int type);
/* May FROM send this to TO? A matter of the table alone. */
bool msg_permitted(int type, enum role_id from, enum role_id to);
/* Is this answered by a reply (a REQUEST or a FACT)? */
bool msg_is_request(int type);

/* Closes the FD fields that are not -1, and sets them to it. */
void msg_close(struct msg *m);
/* Of a decoded message; closes its FD fields. NULL is fine. */
void msg_free(struct msg *m);

#endif
