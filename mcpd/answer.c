#include <string.h>

#include "common/utf8.h"
#include "mcpd/answer.h"
#include "mcpd/message.h"

/* What every modern result carries, in front and behind (mcp.md 3.3). */
static const char modern_head[] = "\"resultType\":\"complete\"";
static const char modern_tail[] =
    "\"_meta\":{\"io.modelcontextprotocol/serverInfo\":" SERVER_INFO "}";

static void
answer_open(struct buffer *out, const struct json_span *id)
{
	buffer_add_text(out, "{\"jsonrpc\":\"2.0\",");
	if (id->len == 0)
		return;
	buffer_add_text(out, "\"id\":");
	buffer_add(out, id->bytes, id->len);
	buffer_add_char(out, ',');
}

void
answer_error(struct buffer *out, const struct json_span *id, int code,
    const char *text, const struct json_span *name, const char *data)
{
	struct buffer message = {0};

	buffer_add_text(&message, text);
	if (name != NULL) {
		buffer_add_text(&message, ": ");
		buffer_add(&message, name->bytes,
		    utf8_cut(name->bytes, name->len, MESSAGE_NAME_MAX));
	}
	answer_open(out, id);
	buffer_printf(out, "\"error\":{\"code\":%d,\"message\":", code);
	json_write_string(out, message.bytes, message.len);
	buffer_free(&message);
	if (data != NULL) {
		buffer_add_text(out, ",\"data\":");
		buffer_add_text(out, data);
	}
	buffer_add_text(out, "}}");
}

static void
result_open(struct buffer *out, const struct json_span *id, bool is_modern)
{
	answer_open(out, id);
	buffer_add_text(out, "\"result\":{");
	if (is_modern) {
		buffer_add_text(out, modern_head);
		buffer_add_char(out, ',');
	}
}

static void
result_close(struct buffer *out, bool is_modern)
{
	if (is_modern) {
		buffer_add_char(out, ',');
		buffer_add_text(out, modern_tail);
	}
	buffer_add_text(out, "}}");
}

void
answer_result(struct buffer *out, const struct json_span *id, bool is_modern,
    const char *body)
{
	result_open(out, id, is_modern);
	buffer_add_text(out, body);
	result_close(out, is_modern);
}

void
answer_tool(struct buffer *out, const struct json_span *id, bool is_modern,
    const struct json_span *text, bool is_error)
{
	result_open(out, id, is_modern);
	buffer_add_text(out, "\"content\":[{\"type\":\"text\",\"text\":");
	json_write_string(out, text->bytes, text->len);
	buffer_printf(out, "}],\"isError\":%s", is_error ? "true" : "false");
	result_close(out, is_modern);
}
