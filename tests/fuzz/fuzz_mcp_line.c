/*
 * What a worker can send to its mcpd, from the first byte to the requests that
 * go to ledger and intake (which do not answer here). Every line that comes
 * back is one JSON-RPC object, or an array of them.
 */
#include <sys/socket.h>

#include <string.h>
#include <unistd.h>

#include "mcpd/answer.h"
#include "mcpd/lines.h"
#include "mcpd/server.h"
#include "mcpd/stream.h"
#include "tests/fuzz/fuzz.h"

static const peer_handler handlers[MSG_COUNT] = {NULL};
static const struct peer_ops ops = {.handlers = handlers};

static void
check_response(const json_t *response)
{
	MUST(json_is_object(response));
	MUST(strcmp("2.0",
		 json_string_value(json_object_get(response, "jsonrpc"))) == 0);
	MUST((json_object_get(response, "result") == NULL) !=
	    (json_object_get(response, "error") == NULL));
}

static void
check_line(const struct json_span *line)
{
	/* An id is echoed as it came, half surrogate pairs and all. */
	static const struct json_rules rules = {.max_bytes = 16 * 1024 * 1024,
	    .max_depth = 16,
	    .max_members = 10000};
	json_t *json = json_read(line->bytes, line->len, &rules, NULL);
	const json_t *response;
	size_t i;

	MUST(line->len <= LINES_MCPD_MAX);
	MUST(json != NULL);
	if (json_is_array(json)) {
		MUST(json_array_size(json) != 0);
		json_array_foreach (json, i, response)
			check_response(response);
	} else {
		check_response(json);
	}
	json_decref(json);
}

static void
check_output(int fd)
{
	struct json_span line;
	struct lines lines;
	ssize_t n;

	lines_init(&lines, 16 * 1024 * 1024);
	while ((n = recv(fd, lines_room(&lines, 65536), 65536, MSG_DONTWAIT)) >
	    0) {
		lines_added(&lines, (size_t)n);
		while (lines_next(&lines, &line) != LINES_NONE)
			check_line(&line);
	}
	lines_free(&lines);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct event_base *base;
	struct server server;
	int fds[2];

	if (base == NULL)
		base = event_base_new();
	server_init(&server, base, DOMAINS_ALL);
	memset(server.token, 't', TOKEN_LEN);
	server.call_deadline_ms = server.post_wait_ms = 60000;
	server.ledger = peer_new(base, ROLE_MCPD, ROLE_LEDGER, "", &ops, NULL);
	server.intake = peer_new(base, ROLE_MCPD, ROLE_INTAKE, "", &ops, NULL);
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	server_connect(&server, fds[0], fds[0]);
	stream_feed(server.stream, (const char *)data, size);
	MUST(server.call_count >= server.stream->call_count);
	check_output(fds[1]);
	server_clear(&server);
	MUST(server.call_count == 0);
	peer_free(server.ledger);
	peer_free(server.intake);
	(void)close(fds[1]);
	return 0;
}
