/* The wire: what a line is, both eras, limits (mcp.md 1 to 4, 7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/xmalloc.h"
#include "mcp_world.h"
#include "mcpd/answer.h"
#include "mcpd/call.h"
#include "mcpd/message.h"
#include "mcpd/stream.h"

#define META "io.modelcontextprotocol/"
#define CLAIM                                                           \
	"\"_meta\":{\"" META "protocolVersion\":\"2026-07-28\",\"" META \
	"clientCapabilities\":{}}"
#define MODERN_TAIL "\"_meta\":{\"" META "serverInfo\":" SERVER_INFO "}"

/* ---- classification --------------------------------------------------- */

/* mcp.md 1.2: the first condition that holds decides. */
static const struct kind_row {
	const char *line;
	enum message_kind kind;
	int code;
	const char *id;
} kind_rows[] = {
    {"", MESSAGE_DROPPED, 0, ""},
    {" \t ", MESSAGE_DROPPED, 0, ""},
    {"this is not JSON", MESSAGE_WRONG, -32700, ""},
    {"\xef\xbb\xbf{}", MESSAGE_WRONG, -32700, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", MESSAGE_WRONG,
	-32700, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,", MESSAGE_WRONG, -32700, ""},
    {"[]", MESSAGE_BATCH, 0, ""},
    {"7", MESSAGE_WRONG, -32600, ""},
    {"\"x\"", MESSAGE_WRONG, -32600, ""},
    {"null", MESSAGE_WRONG, -32600, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", MESSAGE_DROPPED, 0, "1"},
    {"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600}}", MESSAGE_DROPPED, 0,
	""},
    {"{\"id\":null,\"error\":{}}", MESSAGE_DROPPED, 0, ""},
    {"{\"method\":null,\"error\":{}}", MESSAGE_DROPPED, 0, ""},
    {"{\"id\":5,\"method\":\"ping\"}", MESSAGE_WRONG, -32600, "5"},
    {"{\"jsonrpc\":\"1.0\",\"id\":5,\"method\":\"ping\"}", MESSAGE_WRONG,
	-32600, "5"},
    {"{\"jsonrpc\":2.0,\"id\":5,\"method\":\"ping\"}", MESSAGE_WRONG, -32600,
	"5"},
    {"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":7}", MESSAGE_WRONG, -32600, "5"},
    {"{\"jsonrpc\":\"2.0\",\"id\":5}", MESSAGE_WRONG, -32600, "5"},
    {"{}", MESSAGE_WRONG, -32600, ""},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"x\"}", MESSAGE_NOTIFICATION, 0, ""},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":3}",
	MESSAGE_NOTIFICATION, 0, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", MESSAGE_WRONG,
	-32600, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", MESSAGE_WRONG,
	-32600, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1e3,\"method\":\"ping\"}", MESSAGE_WRONG,
	-32600, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}", MESSAGE_WRONG,
	-32600, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", MESSAGE_WRONG,
	-32600, ""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":[]}",
	MESSAGE_WRONG, -32602, "1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":null}",
	MESSAGE_WRONG, -32602, "1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":"
     "3}}",
	MESSAGE_WRONG, -32602, "1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"x\"}", MESSAGE_REQUEST, 0,
	"0"},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"x\"}", MESSAGE_REQUEST, 0,
	"\"\""},
    {"{\"jsonrpc\":\"2.0\",\"id\":-1,\"method\":\"x\"}", MESSAGE_REQUEST, 0,
	"-1"},
    {"{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"x\"}",
	MESSAGE_REQUEST, 0, "9007199254740993"},
    {"{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999,\"method\":\"x\"}",
	MESSAGE_REQUEST, 0, "99999999999999999999"},
    {"{\"jsonrpc\":\"2.0\",\"id\":\"\\u0061\",\"method\":\"x\"}",
	MESSAGE_REQUEST, 0, "\"\\u0061\""},
    {"{\"method\":\"x\",\"id\":1,\"jsonrpc\":\"2.0\",\"id\":\"last\"}",
	MESSAGE_REQUEST, 0, "\"last\""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\ud800\\u0000\"}",
	MESSAGE_REQUEST, 0, "1"},
};

static void
lines_are_classified_by_the_table(void **state)
{
	size_t i;

	for (i = 0; i < sizeof(kind_rows) / sizeof(kind_rows[0]); i++) {
		const struct kind_row *row = &kind_rows[i];
		struct json_span line = {row->line, strlen(row->line)};
		struct message m;

		message_read(&m, &line);
		if (m.kind != row->kind)
			fail_msg("%s: kind %d, not %d", row->line, m.kind,
			    row->kind);
		assert_int_equal(row->code, m.code);
		assert_int_equal(strlen(row->id), m.id.len);
		assert_memory_equal(
		    row->id, m.id.len == 0 ? "" : m.id.bytes, m.id.len);
		message_clear(&m);
	}
}

static void
an_id_of_too_many_bytes_is_none(void **state)
{
	char id[MESSAGE_ID_MAX + 2];
	struct json_span span = {id, MESSAGE_ID_MAX};

	memset(id, 'a', sizeof(id));
	id[0] = '"';
	assert_true(message_id_ok(&span));
	span.len++;
	assert_false(message_id_ok(&span));
}

static const struct equal_row {
	const char *a, *b;
	bool is_equal;
} equal_rows[] = {
    {"1", "1", true},
    {"1", "\"1\"", false},
    {"1", "2", false},
    {"\"a\"", "\"\\u0061\"", true},
    {"\"a\"", "\"b\"", false},
    {"\"\\u0000\"", "\"\\u0000x\"", false},
};

static void
ids_are_compared_by_type_and_value(void **state)
{
	size_t i;

	for (i = 0; i < sizeof(equal_rows) / sizeof(equal_rows[0]); i++) {
		struct json_span a = {equal_rows[i].a, strlen(equal_rows[i].a)};
		struct json_span b = {equal_rows[i].b, strlen(equal_rows[i].b)};

		assert_int_equal(
		    equal_rows[i].is_equal, message_id_equal(&a, &b));
	}
}

/* ---- exchanges -------------------------------------------------------- */

/* A stub ledger with one event, whose report always stands. */
static void
answer_all(struct world *w, const struct reply_to *to, const struct msg *m)
{
	static const char snapshot[] =
	    "{\"type\":\"Comment\",\"title\":\"T\","
	    "\"content\":\"Say hello\",\"updated_at\":\"2026-01-01\"}";
	struct msg reply = {.type = MSG_INSTRUCTION};

	if (m->type == MSG_GET_DISPATCH) {
		reply.instruction.found = true;
		reply.instruction.event_id = 101;
		reply.instruction.event_type = "comment.created";
		reply.instruction.trigger = "mentioned";
		reply.instruction.bucket_id = 7;
		reply.instruction.recording_id = 8;
		reply.instruction.recording_url = "https://x.test/8";
		reply.instruction.reply_kind = "comment";
		reply.instruction.reply_recording_id = 6;
		reply.instruction.requester_id = 9;
		reply.instruction.acknowledge = true;
		reply.instruction.delivery = "exposed";
		reply.instruction.snapshot =
		    (struct blob){snapshot, sizeof(snapshot) - 1};
	} else {
		reply.type = MSG_REPORT_IS;
		reply.report_is.event_id = 101;
		reply.report_is.delivery = "completed";
		reply.report_is.outcome = "succeeded";
	}
	peer_reply(to, &reply);
}

#define GET_TEXT                                                               \
	"{\\n  \\\"instruction\\\": {\\n    \\\"event_id\\\": 101,\\n    "     \
	"\\\"event_type\\\": \\\"comment.created\\\",\\n    \\\"trigger\\\": " \
	"\\\"mentioned\\\",\\n    \\\"recording\\\": {\\n      "               \
	"\\\"bucket_id\\\": 7,\\n      \\\"recording_id\\\": 8,\\n      "      \
	"\\\"type\\\": \\\"Comment\\\",\\n      \\\"title\\\": \\\"T\\\",\\n " \
	"     "                                                                \
	"\\\"url\\\": \\\"https://x.test/8\\\"\\n    },\\n    "                \
	"\\\"reply_to\\\": "                                                   \
	"{\\n      \\\"kind\\\": \\\"comment\\\",\\n      "                    \
	"\\\"recording_id\\\": 6\\n    },\\n    \\\"requester_id\\\": 9,\\n  " \
	"  "                                                                   \
	"\\\"acknowledge\\\": true,\\n    \\\"guard_acknowledged\\\": "        \
	"false,\\n"                                                            \
	"    \\\"delivery\\\": \\\"exposed\\\",\\n    \\\"content\\\": "       \
	"\\\"Say hello\\\",\\n    \\\"content_updated_at\\\": "                \
	"\\\"2026-01-01\\\"\\n  }\\n}"
#define DONE_TEXT                                             \
	"{\\n  \\\"event_id\\\": 101,\\n  \\\"delivery\\\": " \
	"\\\"completed\\\","                                  \
	"\\n  \\\"outcome\\\": \\\"succeeded\\\"\\n}"
#define MISSING_TEXT                                                         \
	"{\\n  \\\"error\\\": \\\"invalid_params\\\",\\n  \\\"message\\\": " \
	"\\\"outcome is missing\\\"\\n}"
#define LEGACY_SESSION(version)                                          \
	"\"result\":{\"protocolVersion\":\"" version                     \
	"\",\"capabilities\":{\"tools\":{}},\"serverInfo\":" SERVER_INFO \
	",\"instructions\":@INSTRUCTIONS@}}"

/* "C" lines are the client's, "S" the server's; after each C all S are due. */
static const char *const codex_2025_06_18[] = {
    "C{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
    "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"experimental\":"
    "{\"codex/auth-change\":{}},\"elicitation\":{\"form\":{},\"url\":{}}},"
    "\"clientInfo\":{\"name\":\"codex-mcp-client\",\"title\":\"Codex\","
    "\"version\":\"0.171.0\"}}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":0," LEGACY_SESSION("2025-06-18"),
    "C{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
    "C{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{"
    "\"_meta\":{\"progressToken\":0}}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":@TOOLS@}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{"
    "\"_meta\":{\"callId\":\"call_0\",\"threadId\":\"01a2\","
    "\"progressToken\":1},\"name\":\"basecamp_connect\",\"arguments\":{"
    "\"action\":\"get_dispatch\"}}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[{\"type\":"
    "\"text\",\"text\":\"" GET_TEXT "\"}],\"isError\":false}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{"
    "\"name\":\"basecamp_connect\",\"arguments\":{\"action\":"
    "\"complete_dispatch\",\"params\":{\"event_id\":101}}}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[{\"type\":"
    "\"text\",\"text\":\"" MISSING_TEXT "\"}],\"isError\":true}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":{"
    "\"name\":\"nope\",\"arguments\":{}}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":-32602,\"message\":"
    "\"Unknown tool: nope\"}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":\"p-1\",\"method\":\"ping\"}",
    "S{\"jsonrpc\":\"2.0\",\"id\":\"p-1\",\"result\":{}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"prompts/list\"}",
    "S{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":-32601,\"message\":"
    "\"Method not found: prompts/list\"}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"tools/list\",\"params\":{"
    "\"cursor\":\"zzz\"}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":6,\"error\":{\"code\":-32602,\"message\":"
    "\"Invalid cursor\"}}",
    "Cthis is not JSON",
    "C[]",
    "C{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
    NULL,
};

static const char *const claude_2025_11_25[] = {
    "C{\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
    "\"2025-11-25\",\"capabilities\":{\"roots\":{\"listChanged\":true},"
    "\"elicitation\":{\"form\":{},\"url\":{}}},\"clientInfo\":{\"name\":"
    "\"claude-code\",\"title\":\"Claude Code\",\"version\":\"2.1.332\"}},"
    "\"jsonrpc\":\"2.0\",\"id\":0}",
    "S{\"jsonrpc\":\"2.0\",\"id\":0," LEGACY_SESSION("2025-11-25"),
    "C{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
    "C{\"method\":\"tools/call\",\"params\":{\"name\":\"basecamp_connect\","
    "\"arguments\":{\"action\":\"complete_dispatch\",\"params\":{"
    "\"event_id\":101,\"outcome\":\"succeeded\"}},\"_meta\":{"
    "\"claudecode/toolUseId\":\"toolu_1\",\"progressToken\":2}},"
    "\"jsonrpc\":\"2.0\",\"id\":2}",
    "S{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[{\"type\":"
    "\"text\",\"text\":\"" DONE_TEXT "\"}],\"isError\":false}}",
    "Cthis is not JSON",
    "S{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"Parse "
    "error\"}}",
    "C[{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}]",
    "S{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"Batches "
    "are not supported in this protocol version\"}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"initialize\",\"params\":{"
    "\"protocolVersion\":\"1999-01-01\",\"capabilities\":{},"
    "\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":10," LEGACY_SESSION("2025-11-25"),
    "C{\"jsonrpc\":\"2.0\",\"id\":11,\"method\":\"initialize\",\"params\":{"
    "\"protocolVersion\":\"2026-07-28\",\"capabilities\":{},"
    "\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":11," LEGACY_SESSION("2025-11-25"),
    "C{\"jsonrpc\":\"2.0\",\"id\":12,\"method\":\"initialize\",\"params\":{"
    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":12,\"error\":{\"code\":-32602,"
    "\"message\":\"initialize needs protocolVersion, capabilities and "
    "clientInfo\"}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":13,\"method\":\"tools/call\",\"params\":{"
    "\"name\":7}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":13,\"error\":{\"code\":-32602,"
    "\"message\":\"tools/call needs a name, and arguments that are an "
    "object\"}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":14,\"method\":\"tools/call\",\"params\":{"
    "\"name\":\"basecamp_connect\",\"arguments\":[]}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":14,\"error\":{\"code\":-32602,"
    "\"message\":\"tools/call needs a name, and arguments that are an "
    "object\"}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":15,\"method\":\"logging/setLevel\"}",
    "S{\"jsonrpc\":\"2.0\",\"id\":15,\"error\":{\"code\":-32601,"
    "\"message\":\"Method not found: logging/setLevel\"}}",
    NULL,
};

static const char *const batch_2025_03_26[] = {
    "C{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
    "\"protocolVersion\":\"2025-03-26\",\"capabilities\":{},"
    "\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":0," LEGACY_SESSION("2025-03-26"),
    "C[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},{\"jsonrpc\":"
    "\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
    "\"requestId\":99}},{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"nope\"}]",
    "S[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},{\"jsonrpc\":\"2.0\","
    "\"id\":2,\"error\":{\"code\":-32601,\"message\":\"Method not found: "
    "nope\"}}]",
    /* The one that has to be asked for comes last, in one line with all. */
    "C[{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{"
    "\"name\":\"basecamp_connect\",\"arguments\":{\"action\":"
    "\"complete_dispatch\",\"params\":{\"event_id\":101,\"outcome\":"
    "\"succeeded\"}}}},{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}]",
    "S[{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}},{\"jsonrpc\":\"2.0\","
    "\"id\":3,\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
    "\"" DONE_TEXT "\"}],\"isError\":false}}]",
    "C[{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"initialize\",\"params\":{"
    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
    "\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}]",
    "S[{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":-32600,"
    "\"message\":\"initialize may not be part of a batch\"}}]",
    /* Nothing to answer, or nothing that may be answered. */
    "C[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}]",
    "C[{\"jsonrpc\":\"2.0\",\"id\":6,\"result\":{}},7]",
    "C[]",
    NULL,
};

static const char *const claude_2026_07_28[] = {
    "C{\"jsonrpc\":\"2.0\",\"id\":\"server-discover-probe-1\",\"method\":"
    "\"server/discover\",\"params\":{\"_meta\":{\"" META
    "protocolVersion\":\"2026-07-28\",\"" META "clientInfo\":{\"name\":"
    "\"claude-code\",\"title\":\"Claude Code\",\"version\":\"2.1.332\"},\"" META
    "clientCapabilities\":{\"roots\":{\"listChanged\":true}}}}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":\"server-discover-probe-1\",\"result\":{"
    "\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
    "\"capabilities\":{\"tools\":{}},\"instructions\":@INSTRUCTIONS@,"
    "\"ttlMs\":0,\"cacheScope\":\"private\"," MODERN_TAIL "}}",
    "C{\"method\":\"tools/"
    "list\",\"jsonrpc\":\"2.0\",\"id\":0,\"params\":{" CLAIM "}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"resultType\":\"complete\","
    "\"tools\":@TOOLS@,\"ttlMs\":0,\"cacheScope\":\"private\"," MODERN_TAIL
    "}}",
    "C{\"method\":\"tools/call\",\"params\":{\"name\":\"basecamp_connect\","
    "\"arguments\":{\"action\":\"get_dispatch\",\"params\":{}},\"_meta\":{"
    "\"" META "protocolVersion\":\"2026-07-28\",\"" META
    "clientCapabilities\":{},\"claudecode/toolUseId\":\"toolu_1\","
    "\"progressToken\":1}},\"jsonrpc\":\"2.0\",\"id\":1}",
    "S{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\","
    "\"content\":[{\"type\":\"text\",\"text\":\"" GET_TEXT
    "\"}],\"isError\":false," MODERN_TAIL "}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{"
    "\"name\":\"basecamp_connect\",\"arguments\":{\"action\":"
    "\"complete_dispatch\",\"params\":{\"event_id\":101}}," CLAIM "}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resultType\":\"complete\","
    "\"content\":[{\"type\":\"text\",\"text\":\"" MISSING_TEXT
    "\"}],\"isError\":true," MODERN_TAIL "}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{"
    "\"name\":\"nope\"," CLAIM "}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32602,\"message\":"
    "\"Unknown tool: nope\"}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"server/discover\","
    "\"params\":{\"_meta\":{\"" META "protocolVersion\":\"v999.0.0\",\"" META
    "clientCapabilities\":{}}}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":-32022,\"message\":"
    "\"Unsupported protocol version\",\"data\":{\"supported\":["
    "\"2026-07-28\"],\"requested\":\"v999.0.0\"}}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":40,\"method\":\"tools/list\","
    "\"params\":{\"_meta\":{\"" META "protocolVersion\":\"2025-11-25\"}}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":40,\"error\":{\"code\":-32022,"
    "\"message\":\"Unsupported protocol version\",\"data\":{\"supported\":["
    "\"2026-07-28\"],\"requested\":\"2025-11-25\"}}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"params\":{" CLAIM
    "}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":-32601,\"message\":"
    "\"Method not found: ping\"}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"subscriptions/listen\","
    "\"params\":{\"notifications\":{\"toolsListChanged\":true}," CLAIM "}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":6,\"error\":{\"code\":-32601,\"message\":"
    "\"Method not found: subscriptions/listen\"}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":101,\"method\":\"server/discover\","
    "\"params\":{}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":101,\"error\":{\"code\":-32602,"
    "\"message\":\"Missing _meta[\\\"" META "protocolVersion\\\"]\"}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":104,\"method\":\"server/discover\","
    "\"params\":{\"_meta\":{\"" META "protocolVersion\":\"2026-07-28\"}}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":104,\"error\":{\"code\":-32602,"
    "\"message\":\"Missing _meta[\\\"" META "clientCapabilities\\\"]\"}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":105,\"method\":\"server/discover\","
    "\"params\":{\"_meta\":{\"" META "protocolVersion\":\"2026-07-28\",\"" META
    "clientCapabilities\":{},\"" META "logLevel\":\"loud\"}}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":105,\"error\":{\"code\":-32602,"
    "\"message\":\"Invalid _meta[\\\"" META "logLevel\\\"]\"}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":500,\"method\":\"initialize\",\"params\":"
    "{" CLAIM "}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":500,\"error\":{\"code\":-32601,"
    "\"message\":\"Method not found: initialize\"}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":501,\"method\":\"tools/list\"}",
    "S{\"jsonrpc\":\"2.0\",\"id\":501,\"error\":{\"code\":-32602,"
    "\"message\":\"Send initialize first, or name the protocol version in "
    "_meta\",\"data\":{\"supported\":[\"2026-07-28\",\"2025-11-25\","
    "\"2025-06-18\",\"2025-03-26\",\"2024-11-05\"]}}}",
    "C{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
    "S{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"Invalid "
    "request id\"}}",
    "C{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"Invalid "
    "request\"}}",
    "C{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nobody_knows\"}",
    /* The same pipe may still open a session, and stay modern as well. */
    "C{\"jsonrpc\":\"2.0\",\"id\":502,\"method\":\"initialize\",\"params\":{"
    "\"protocolVersion\":\"2024-11-05\",\"capabilities\":{},"
    "\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":502," LEGACY_SESSION("2024-11-05"),
    "C{\"jsonrpc\":\"2.0\",\"id\":503,\"method\":\"tools/list\"}",
    "S{\"jsonrpc\":\"2.0\",\"id\":503,\"result\":{\"tools\":@TOOLS@}}",
    "C{\"method\":\"tools/"
    "list\",\"jsonrpc\":\"2.0\",\"id\":504,\"params\":{" CLAIM "}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":504,\"result\":{\"resultType\":"
    "\"complete\",\"tools\":@TOOLS@,\"ttlMs\":0,\"cacheScope\":"
    "\"private\"," MODERN_TAIL "}}",
    NULL,
};

static const char *const *const exchanges[] = {
    codex_2025_06_18, claude_2025_11_25, batch_2025_03_26, claude_2026_07_28};

static void
exchanges_are_as_recorded(void **state)
{
	const char *const *line;
	struct world *w;
	size_t i;

	for (i = 0; i < sizeof(exchanges) / sizeof(exchanges[0]); i++) {
		w = world_new();
		w->answer = answer_all;
		for (line = exchanges[i]; *line != NULL; line++) {
			if (**line == 'S') {
				world_expect(w, *line + 1);
				continue;
			}
			world_expect_silence(w);
			world_say(w, *line + 1);
		}
		world_expect_silence(w);
		world_free(w);
	}
}

/* ---- cancelling ------------------------------------------------------- */

#define CALL(id)                                                               \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","        \
	"\"params\":{\"name\":\"basecamp_connect\",\"arguments\":{\"action\":" \
	"\"ack_dispatch\",\"params\":{\"event_id\":101}}}}"
#define CANCEL(id)                                                     \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"," \
	"\"params\":{\"requestId\":" id ",\"reason\":\"x\"}}"

static void
answer_one(struct world *w, size_t i)
{
	answer_all(w, &w->to[i], w->asked[i]);
	world_turn(w);
}

static void
a_cancelled_call_is_not_answered(void **state)
{
	struct world *w = world_new();

	world_initialize(w, "2025-11-25");
	world_say(w, CALL("7"));
	world_say(w, CALL("\"7\""));
	world_say(w, CANCEL("7"));
	world_say(w, CANCEL("\"unknown\""));
	world_say(w, CANCEL("null"));
	world_say(w,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
	    "cancelled\",\"params\":3}");
	assert_int_equal(2, w->asked_count);
	answer_one(w, 0);
	world_expect_silence(w);
	answer_one(w, 1);
	assert_non_null(strstr(world_hear(w), "\"id\":\"7\""));
	/* Too late changes nothing. */
	world_say(w, CANCEL("\"7\""));
	world_expect_silence(w);
	assert_int_equal(0, w->server.call_count);
	world_free(w);
}

static void
a_cancelled_call_leaves_its_batch(void **state)
{
	struct world *w = world_new();

	world_initialize(w, "2025-03-26");
	world_say(w, "[" CALL("1") "," CALL("2") "]");
	world_say(w, CANCEL("1"));
	answer_one(w, 0);
	world_expect_silence(w);
	answer_one(w, 1);
	assert_memory_equal(
	    "[{\"jsonrpc\":\"2.0\",\"id\":2,", world_hear(w), 25);
	world_say(w, "[" CALL("3") "]");
	world_say(w, CANCEL("3"));
	answer_one(w, 2);
	world_expect_silence(w);
	world_free(w);
}

static void
calls_end_in_any_order(void **state)
{
	struct world *w = world_new();

	world_initialize(w, "2025-06-18");
	world_say(w, CALL("1"));
	world_say(w, CALL("2"));
	answer_one(w, 1);
	assert_non_null(strstr(world_hear(w), "\"id\":2"));
	answer_one(w, 0);
	assert_non_null(strstr(world_hear(w), "\"id\":1"));
	world_free(w);
}

/* ---- streams ---------------------------------------------------------- */

static void
a_new_stream_has_no_session_and_old_calls_end_silently(void **state)
{
	struct world *w = world_new();

	world_initialize(w, "2025-06-18");
	world_say(w, CALL("1"));
	world_connect(w);
	answer_one(w, 0);
	world_expect_silence(w);
	assert_int_equal(0, w->server.call_count);
	world_say(
	    w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
	assert_non_null(strstr(world_hear(w), "Send initialize first"));
	world_free(w);
}

/* A report that its worker did not live to see answered still counts. */
static void
what_an_old_stream_holds_is_carried_out(void **state)
{
	static const char line[] = CALL("1") "\n";
	struct world *w = world_new();
	int fds[2];

	world_initialize(w, "2025-06-18");
	assert_int_equal((ssize_t)strlen(line),
	    send(w->worker, line, strlen(line), MSG_NOSIGNAL));
	assert_int_equal(0, close(w->worker));
	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	w->worker = fds[1];
	server_connect(&w->server, fds[0]);
	world_turn(w);
	assert_int_equal(1, w->asked_count);
	answer_one(w, 0);
	world_expect_silence(w);
	world_free(w);
}

static void
on_idle(void *arg)
{
	(*(int *)arg)++;
}

static void
idle_is_after_the_last_report(void **state)
{
	static const char line[] = CALL("1") "\n";
	struct world *w = world_new();
	int idle = 0;

	world_initialize(w, "2025-06-18");
	server_when_idle(&w->server, on_idle, &idle);
	assert_int_equal(0, idle);
	assert_int_equal((ssize_t)strlen(line),
	    send(w->worker, line, strlen(line), MSG_NOSIGNAL));
	(void)close(w->worker);
	w->worker = -1;
	world_turn(w);
	assert_int_equal(1, w->asked_count);
	assert_int_equal(0, idle);
	answer_one(w, 0);
	assert_int_equal(1, idle);
	w->server.idle = NULL;
	world_free(w);
}

static void
a_dead_ledger_is_asked_again(void **state)
{
	struct world *w = world_new();

	world_initialize(w, "2025-11-25");
	world_say(w, CALL("1"));
	assert_int_equal(1, w->asked_count);
	world_relink(w);
	assert_int_equal(2, w->asked_count);
	answer_one(w, 1);
	assert_non_null(strstr(world_hear(w), "\"isError\":false"));
	world_expect_silence(w);
	world_free(w);
}

/* ---- limits ----------------------------------------------------------- */

static void
one_byte_at_a_time(void **state)
{
	static const char line[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":\"\xc3\xa4\",\"method\":\"ping\"}"
	    "\r\n\n"
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n";
	struct world *w = world_new();
	size_t i;

	for (i = 0; i < sizeof(line) - 1; i++)
		world_write(w, line + i, 1);
	world_expect(
	    w, "{\"jsonrpc\":\"2.0\",\"id\":\"\xc3\xa4\",\"result\":{}}");
	world_expect(w, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}");
	world_free(w);
}

/* A ping of exactly LEN bytes, its id where it is said. */
static char *
long_ping(size_t len, bool id_first)
{
	static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":9,";
	char *line = xmalloc(len + 2), tail[64];
	size_t at = 0;

	memset(line, 'a', len);
	(void)snprintf(tail, sizeof(tail), "\",%s\"method\":\"ping\"}\n",
	    id_first ? "" : "\"jsonrpc\":\"2.0\",\"id\":9,");
	if (id_first) {
		memcpy(line, head, sizeof(head) - 1);
		at = sizeof(head) - 1;
	} else {
		line[at++] = '{';
	}
	memcpy(line + at, "\"x\":\"", 5);
	memcpy(line + len + 1 - strlen(tail), tail, strlen(tail) + 1);
	return line;
}

static void
a_line_has_its_bound(void **state)
{
	struct world *w = world_new();
	char *line = long_ping(MESSAGE_LINE_MAX, true);

	world_write(w, line, MESSAGE_LINE_MAX + 1);
	world_expect(w, "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}");
	free(line);
	line = long_ping(MESSAGE_LINE_MAX + 1, true);
	world_write(w, line, MESSAGE_LINE_MAX + 2);
	world_expect(w,
	    "{\"jsonrpc\":\"2.0\",\"id\":9,\"error\":{\"code\":-32600,"
	    "\"message\":\"Message too long\"}}");
	free(line);
	line = long_ping(MESSAGE_LINE_MAX + 100, false);
	world_write(w, line, MESSAGE_LINE_MAX + 101);
	world_expect(w,
	    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,"
	    "\"message\":\"Message too long\"}}");
	free(line);
	world_say(w, "{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"ping\"}");
	world_expect(w, "{\"jsonrpc\":\"2.0\",\"id\":10,\"result\":{}}");
	world_free(w);
}

static void
an_id_that_the_cut_goes_through_is_none(void **state)
{
	struct json_span line = {"{\"method\":\"x\",\"id\":12", 20};
	struct message m;

	message_read_cut(&m, &line);
	assert_int_equal(MESSAGE_WRONG, m.kind);
	assert_int_equal(0, m.id.len);
	line = (struct json_span){"{\"id\":12,\"result\":{},\"x\":\"", 26};
	message_read_cut(&m, &line);
	assert_int_equal(MESSAGE_DROPPED, m.kind);
}

static void
nesting_has_its_bound(void **state)
{
	struct world *w = world_new();
	struct buffer line = {0};
	int depth, i;

	for (depth = MESSAGE_DEPTH_MAX - 1; depth <= MESSAGE_DEPTH_MAX;
	     depth++) {
		line.len = 0;
		buffer_add_text(&line,
		    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
		    "\"ping\",\"x\":");
		for (i = 0; i < depth; i++)
			buffer_add_char(&line, '[');
		for (i = 0; i < depth; i++)
			buffer_add_char(&line, ']');
		buffer_add_char(&line, '}');
		world_say(w, line.bytes);
	}
	world_expect(w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	world_expect(w,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32600,"
	    "\"message\":\"Message too deep or too large\"}}");
	buffer_free(&line);
	world_free(w);
}

static void
members_have_their_bound(void **state)
{
	struct world *w = world_new();
	struct buffer line = {0};
	int i;

	buffer_add_text(&line,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\","
	    "\"x\":[0");
	for (i = 0; i < MESSAGE_MEMBERS_MAX; i++)
		buffer_add_text(&line, ",0");
	buffer_add_text(&line, "]}");
	world_say(w, line.bytes);
	world_expect(w,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32600,"
	    "\"message\":\"Message too deep or too large\"}}");
	buffer_free(&line);
	world_free(w);
}

static void
calls_in_flight_have_their_bound(void **state)
{
	struct world *w = world_new();
	char *line;
	int i;

	world_initialize(w, "2025-11-25");
	for (i = 0; i < CALLS_IN_FLIGHT_MAX; i++) {
		(void)xasprintf(&line,
		    "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\","
		    "\"params\":{\"name\":\"basecamp_connect\",\"arguments\":{"
		    "\"action\":\"get_dispatch\"}}}",
		    i);
		world_say(w, line);
		free(line);
	}
	world_expect_silence(w);
	world_say(w, CALL("\"one more\""));
	world_expect(w,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"one more\",\"error\":{"
	    "\"code\":-32603,\"message\":\"Too many requests in "
	    "flight\"}}");
	/* What is answered inline is never counted. */
	world_say(w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	world_expect(w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	answer_one(w, 0);
	assert_non_null(world_hear(w));
	world_say(w, CALL("\"again\""));
	world_expect_silence(w);
	world_free(w);
}

static void
a_batch_has_its_bound(void **state)
{
	struct world *w = world_new();
	struct buffer line = {0};
	int i, count;

	for (count = 32; count <= 33; count++) {
		world_initialize(w, "2025-03-26");
		line.len = 0;
		for (i = 0; i < count; i++)
			buffer_printf(&line,
			    "%c{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":"
			    "\"ping\"}",
			    i == 0 ? '[' : ',', i);
		buffer_add_char(&line, ']');
		world_say(w, line.bytes);
		if (count == 32)
			assert_non_null(world_hear(w));
		else
			world_expect_silence(w);
	}
	buffer_free(&line);
	world_free(w);
}

static void
names_have_their_bound(void **state)
{
	struct world *w = world_new();
	struct buffer line = {0};
	const char *answer;

	buffer_add_text(&line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"");
	while (line.len < 5000)
		buffer_add_text(&line, "\xc3\xa4");
	buffer_add_text(&line, "\"}");
	world_say(w, line.bytes);
	answer = world_hear(w);
	assert_non_null(strstr(answer, "-32601"));
	assert_true(strlen(answer) < 512);
	buffer_free(&line);
	world_free(w);
}

static void
strange_strings_come_back_as_text(void **state)
{
	struct world *w = world_new();

	world_say(w,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"\\u0000\\ud800\",\"method\":"
	    "\"a\\u0000b\\ud800c\"}");
	world_expect(w,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"\\u0000\\ud800\",\"error\":"
	    "{\"code\":-32601,\"message\":\"Method not found: "
	    "a\\u0000b\xef\xbf\xbd"
	    "c\"}}");
	world_free(w);
}

/* A worker that does not read stops being read, and loses no line. */
static void
a_worker_that_does_not_read_loses_nothing(void **state)
{
	static const char line[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/list\"}\n";
	struct world *w = world_new();
	int sent = 0, heard = 0, tries = 0;
	char text[128], want[32];
	const char *answer;
	ssize_t n;

	world_initialize(w, "2025-11-25");
	while (tries < 50) {
		(void)snprintf(text, sizeof(text), line, sent);
		n = send(
		    w->worker, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
		world_turn(w);
		/* Lines are small: the kernel takes them whole or not. */
		tries = n == -1 ? tries + 1 : 0;
		sent += n != -1;
	}
	assert_true(sent > 100);
	assert_true(w->server.stream->out.len < 4 * 1024 * 1024);
	while ((answer = world_hear(w)) != NULL) {
		(void)snprintf(want, sizeof(want), "\"id\":%d,", heard++);
		assert_non_null(strstr(answer, want));
	}
	assert_int_equal(sent, heard);
	world_free(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lines_are_classified_by_the_table),
	    cmocka_unit_test(an_id_of_too_many_bytes_is_none),
	    cmocka_unit_test(ids_are_compared_by_type_and_value),
	    cmocka_unit_test(exchanges_are_as_recorded),
	    cmocka_unit_test(a_cancelled_call_is_not_answered),
	    cmocka_unit_test(a_cancelled_call_leaves_its_batch),
	    cmocka_unit_test(calls_end_in_any_order),
	    cmocka_unit_test(
		a_new_stream_has_no_session_and_old_calls_end_silently),
	    cmocka_unit_test(what_an_old_stream_holds_is_carried_out),
	    cmocka_unit_test(idle_is_after_the_last_report),
	    cmocka_unit_test(a_dead_ledger_is_asked_again),
	    cmocka_unit_test(one_byte_at_a_time),
	    cmocka_unit_test(a_line_has_its_bound),
	    cmocka_unit_test(an_id_that_the_cut_goes_through_is_none),
	    cmocka_unit_test(nesting_has_its_bound),
	    cmocka_unit_test(members_have_their_bound),
	    cmocka_unit_test(calls_in_flight_have_their_bound),
	    cmocka_unit_test(a_batch_has_its_bound),
	    cmocka_unit_test(names_have_their_bound),
	    cmocka_unit_test(strange_strings_come_back_as_text),
	    cmocka_unit_test(a_worker_that_does_not_read_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
