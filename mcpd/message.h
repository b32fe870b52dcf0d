/*
 * One line of the wire as JSON-RPC sees it (mcp.md 1.2, 1.3, 7): what kind of
 * message it is, its raw id, its method and parameters, or the error that it
 * earns. It knows no method and no revision.
 */
#ifndef MCPD_MESSAGE_H
#define MCPD_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "common/json.h"

#define MESSAGE_LINE_MAX (4 * 1024 * 1024)
#define MESSAGE_DEPTH_MAX 64
#define MESSAGE_MEMBERS_MAX 10000
#define MESSAGE_NAME_MAX 256 /* method, tool, cursor, version */

#define RPC_PARSE_ERROR -32700
#define RPC_INVALID_REQUEST -32600
#define RPC_METHOD_NOT_FOUND -32601
#define RPC_INVALID_PARAMS -32602
#define RPC_INTERNAL_ERROR -32603
#define RPC_VERSION_NOT_SERVED -32022

enum message_kind {
	MESSAGE_DROPPED, /* a response, or nothing at all: never answered */
	MESSAGE_WRONG,   /* earns an error, with its id if that is usable */
	MESSAGE_BATCH,   /* an array */
	MESSAGE_NOTIFICATION,
	MESSAGE_REQUEST,
};

struct message {
	enum message_kind kind;
	json_t *tree;        /* owned; NULL if the line could not be read */
	struct json_span id; /* raw token in the line; len 0: none usable */
	const char *method;  /* "" if there is none; may hold NUL */
	size_t method_len;
	const json_t *params; /* an object, or NULL */
	const json_t *meta;   /* params._meta, an object, or NULL */
	int code;             /* MESSAGE_WRONG: the error */
	const char *text;
};

/* The line must outlive the message, whose id points into it. */
void message_read(struct message *m, const struct json_span *line);
/* The same for what is left of a line that was too long. */
void message_read_cut(struct message *m, const struct json_span *start);
void message_clear(struct message *m);

#endif
