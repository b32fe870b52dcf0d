/*
 * MCP itself, both eras, decided message by message (mcp.md 2, 3): a line
 * comes in, answers go to its origin, calls of tools are begun.
 */
#ifndef MCPD_WIRE_H
#define MCPD_WIRE_H

#include "mcpd/message.h"
#include "mcpd/stream.h"

void wire_take(struct stream *stream, const struct json_span *line);
/* The line was too long; START is what was kept of it. */
void wire_take_cut(struct stream *stream, const struct json_span *start);

#endif
