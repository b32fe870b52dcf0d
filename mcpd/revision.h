/*
 * The revisions of MCP with a handshake (mcp.md 2.5), in what they differ for
 * a server that has tools only.
 */
#ifndef MCPD_REVISION_H
#define MCPD_REVISION_H

#include <stdbool.h>
#include <stddef.h>

#define MODERN_VERSION "2026-07-28"

struct revision {
	const char *version;
	bool has_errors_without_id; /* its schema lets an error be so */
	bool has_batches;
};

/* The one of that version, which may hold NUL, else the newest. */
const struct revision *revision_negotiate(const char *version, size_t len);
/* All that are served, the modern one first, as a JSON array. */
extern const char revisions_json[];

#endif
