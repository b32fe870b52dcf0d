/* The wire: both eras, cancelling, streams (mcp.md 1 to 4). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "mcp_world.h"
#include "mcpd/answer.h"
#include "mcpd/revision.h"

#define META "io.modelcontextprotocol/"
#define CLAIM                                                           \
	"\"_meta\":{\"" META "protocolVersion\":\"2026-07-28\",\"" META \
	"clientCapabilities\":{}}"
#define MODERN_TAIL "\"_meta\":{\"" META "serverInfo\":" SERVER_INFO "}"

/* ---- exchanges -------------------------------------------------------- */

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
    "C{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{"
    "\"name\":\"basecamp_connect\",\"arguments\":{\"action\":"
    "\"get_dispatch\"}}}",
    "S{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":{\"code\":-32602,"
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
		w->answer = world_answer_all;
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

/* What stands behind a NUL counts: such a name is none that is known. */
static const struct nul_row {
	const char *line, *answer;
} nul_rows[] = {
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
     "\"protocolVersion\":\"2025-06-18\\u0000x\",\"capabilities\":{},"
     "\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}",
	"\"protocolVersion\":\"2025-11-25\""},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
     "\"protocolVersion\":\"2025-03-26\\u0000\",\"capabilities\":{},"
     "\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}",
	"\"protocolVersion\":\"2025-11-25\""},
    {"{\"jsonrpc\":\"2.0\\u0000\",\"id\":1,\"method\":\"ping\"}", "-32600"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\\u0000\"}", "-32601"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
     "\"name\":\"basecamp_connect\\u0000\"}}",
	"-32602"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{"
     "\"_meta\":{\"" META "protocolVersion\":\"2026-07-28\\u0000\",\"" META
     "clientCapabilities\":{}}}}",
	"-32022"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{"
     "\"_meta\":{\"" META "protocolVersion\":\"2026-07-28\",\"" META
     "clientCapabilities\":{},\"" META "logLevel\":\"info\\u0000\"}}}",
	"-32602"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
     "\"name\":\"basecamp_connect\",\"arguments\":{\"action\":"
     "\"get_dispatch\\u0000x\"}}}",
	"no action get_dispatch"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
     "\"name\":\"basecamp_connect\",\"arguments\":{\"action\":"
     "\"get_dispatch\",\"params\":{\"event_id\":\"101\\u0000\"}}}}",
	"event_id is not a decimal id"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
     "\"name\":\"basecamp_thread\",\"arguments\":{\"action\":\"reply\","
     "\"params\":{\"event_id\":101,\"content\":\"x\",\"format\":"
     "\"plain\\u0000\"}}}}",
	"format is neither"},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
     "\"name\":\"basecamp_thread\",\"arguments\":{\"action\":\"read\","
     "\"params\":{\"event_id\":101,\"cursor\":\"t.1.2\\u0000\"}}}}",
	"cursor is none"},
};

static void
a_nul_makes_another_name(void **state)
{
	struct world *w = world_open();
	const char *answer;
	size_t i;

	for (i = 0; i < sizeof(nul_rows) / sizeof(nul_rows[0]); i++) {
		world_say(w, nul_rows[i].line);
		answer = world_hear(w);
		if (answer == NULL ||
		    strstr(answer, nul_rows[i].answer) == NULL)
			fail_msg("%s: %s", nul_rows[i].line, answer);
	}
	assert_int_equal(0, w->asked_count);
	world_free(w);
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
	world_answer_one(w, 0);
	world_expect_silence(w);
	world_answer_one(w, 1);
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
	world_answer_one(w, 0);
	world_expect_silence(w);
	world_answer_one(w, 1);
	assert_memory_equal(
	    "[{\"jsonrpc\":\"2.0\",\"id\":2,", world_hear(w), 25);
	world_say(w, "[" CALL("3") "]");
	world_say(w, CANCEL("3"));
	world_answer_one(w, 2);
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
	world_answer_one(w, 1);
	assert_non_null(strstr(world_hear(w), "\"id\":2"));
	world_answer_one(w, 0);
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
	world_answer_one(w, 0);
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
	server_connect(&w->server, fds[0], fds[0]);
	world_turn(w);
	assert_int_equal(1, w->asked_count);
	world_answer_one(w, 0);
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
	world_answer_one(w, 0);
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
	world_answer_one(w, 1);
	assert_non_null(strstr(world_hear(w), "\"isError\":false"));
	world_expect_silence(w);
	world_free(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(exchanges_are_as_recorded),
	    cmocka_unit_test(a_nul_makes_another_name),
	    cmocka_unit_test(a_cancelled_call_is_not_answered),
	    cmocka_unit_test(a_cancelled_call_leaves_its_batch),
	    cmocka_unit_test(calls_end_in_any_order),
	    cmocka_unit_test(
		a_new_stream_has_no_session_and_old_calls_end_silently),
	    cmocka_unit_test(what_an_old_stream_holds_is_carried_out),
	    cmocka_unit_test(idle_is_after_the_last_report),
	    cmocka_unit_test(a_dead_ledger_is_asked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
