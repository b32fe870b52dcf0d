#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulator/route.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct route routes[] = {
    {"GET /.well-known/oauth-authorization-server", auth_server_show, 0},
    {"GET /.well-known/oauth-protected-resource", auth_resource_show, 0},
    {"POST /oauth/tokens", auth_token_create, 0},
    {"POST /oauth/agent_connections", connection_create, 0},
    {"POST /oauth/agent_connection_tokens", connection_token_create, 0},
    {"GET /authorization.json", auth_authorization_show, 0},
    {"GET /cable", cable_open, 0},
    {"GET /{a}/my/profile.json", profile_show, ROUTE_ACCOUNT},
    {"GET /{a}/people/{id}", person_show, ROUTE_ACCOUNT},
    {"GET /{a}/projects.json", projects_list, ROUTE_ACCOUNT},
    {"GET /{a}/projects/{id}", project_show, ROUTE_ACCOUNT},
    {"GET /{a}/projects/{id}/people.json", people_list, ROUTE_ACCOUNT},
    {"POST /{a}/events/stream_ticket.json", ticket_create, ROUTE_ACCOUNT},
    {"GET /{a}/events.json", events_poll, ROUTE_ACCOUNT},
    {"GET /{a}/comments/{id}", comment_show, ROUTE_ACCOUNT},
    {"PUT /{a}/comments/{id}", comment_update, ROUTE_ACCOUNT | ROUTE_WRITE},
    {"GET /{a}/messages/{id}", message_show, ROUTE_ACCOUNT},
    {"GET /{a}/todos/{id}", todo_show, ROUTE_ACCOUNT},
    {"GET /{a}/card_tables/cards/{id}", card_show, ROUTE_ACCOUNT},
    {"GET /{a}/chats.json", chats_list, ROUTE_ACCOUNT},
    {"GET /{a}/chats/{id}/lines.json", lines_list, ROUTE_ACCOUNT},
    {"POST /{a}/chats/{id}/lines.json", line_create,
	ROUTE_ACCOUNT | ROUTE_WRITE},
    {"GET /{a}/chats/{id}/lines/{id}", line_show, ROUTE_ACCOUNT},
    {"GET /{a}/recordings/{id}/subscription.json", subscription_show,
	ROUTE_ACCOUNT},
    {"GET /{a}/recordings/{id}/events.json", history_show, ROUTE_ACCOUNT},
    {"GET /{a}/recordings/{id}/comments.json", comments_list, ROUTE_ACCOUNT},
    {"POST /{a}/recordings/{id}/comments.json", comment_create,
	ROUTE_ACCOUNT | ROUTE_WRITE},
    {"GET /{a}/recordings/{id}/boosts.json", boosts_list, ROUTE_ACCOUNT},
    {"POST /{a}/recordings/{id}/boosts.json", boost_create,
	ROUTE_ACCOUNT | ROUTE_WRITE},
    {"POST /{a}/recordings/{id}/events/{id}/boosts.json", event_boost_create,
	ROUTE_ACCOUNT | ROUTE_WRITE},
    {"POST /sim/emit", steer_emit, ROUTE_STEER},
    {"POST /sim/mention", steer_mention, ROUTE_STEER},
    {"POST /sim/publish", steer_publish, ROUTE_STEER},
    {"POST /sim/fault", steer_fault, ROUTE_STEER},
    {"POST /sim/fault/clear", steer_fault_clear, ROUTE_STEER},
    {"DELETE /sim/fault/clear", steer_fault_clear, ROUTE_STEER},
    {"DELETE /sim/fault/{id}", steer_fault_remove, ROUTE_STEER},
    {"POST /sim/gate", steer_gate, ROUTE_STEER},
    {"POST /sim/release", steer_release, ROUTE_STEER},
    {"POST /sim/world", steer_world, ROUTE_STEER},
    {"GET /sim/world", steer_world_show, ROUTE_STEER},
    {"POST /sim/drop_cable", steer_cable, ROUTE_STEER},
    {"POST /sim/stop_pings", steer_cable, ROUTE_STEER},
    {"POST /sim/disconnect", steer_disconnect, ROUTE_STEER},
    {"GET /sim/log", steer_log, ROUTE_STEER},
    {"GET /sim/messages", steer_messages, ROUTE_STEER},
    {"GET /sim/state", steer_state, ROUTE_STEER},
    {"GET /sim/await", steer_await, ROUTE_STEER},
};

/* The segment at *AT, which moves on to the next one's slash or the end. */
static size_t
segment_take(const char **at, const char **segment)
{
	*segment = *at + 1;
	*at = *segment + strcspn(*segment, "/");
	return (size_t)(*at - *segment);
}

/* The length without a ".json" at the end of the path. */
static size_t
segment_bare(const char *segment, size_t len, const char *rest)
{
	if (*rest == '\0' && len > 5 &&
	    memcmp(segment + len - 5, ".json", 5) == 0)
		return len - 5;
	return len;
}

static bool
segment_id(const char *segment, size_t len, int64_t *id)
{
	char digits[20];
	size_t i;

	if (len == 0 || len >= sizeof(digits))
		return false;
	for (i = 0; i < len; i++) {
		if (!isdigit((unsigned char)segment[i]))
			return false;
		digits[i] = segment[i];
	}
	digits[len] = '\0';
	errno = 0;
	*id = strtoll(digits, NULL, 10);
	return errno == 0 && *id > 0;
}

static bool
path_matches(const char *pattern, const char *path, int64_t *ids)
{
	const char *want, *have;
	size_t want_len, have_len, found = 0;
	int64_t id;

	while (*pattern == '/' && *path == '/') {
		want_len = segment_take(&pattern, &want);
		have_len = segment_take(&path, &have);
		want_len = segment_bare(want, want_len, pattern);
		have_len = segment_bare(have, have_len, path);
		if (want_len == 1 && *want == '*') {
			if (*pattern == '\0')
				return true;
		} else if (want_len > 0 && *want == '{') {
			if (!segment_id(have, have_len, &id))
				return false;
			if (ids != NULL && found < ROUTE_IDS)
				ids[found++] = id;
		} else if (want_len != have_len ||
		    memcmp(want, have, want_len) != 0) {
			return false;
		}
	}
	return *pattern == '\0' && *path == '\0';
}

bool
pattern_matches(const char *pattern, const char *method, const char *path,
    int64_t ids[ROUTE_IDS])
{
	size_t len = strcspn(pattern, " ");

	if (pattern[len] != ' ')
		return false;
	if (!(len == 1 && *pattern == '*') &&
	    (strlen(method) != len || memcmp(pattern, method, len) != 0))
		return false;
	return path_matches(pattern + len + 1, path, ids);
}

bool
pattern_is_valid(const char *text)
{
	size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ*");

	return len > 0 && text[len] == ' ' && text[len + 1] == '/' &&
	    strlen(text) < ROUTE_PATTERN_MAX;
}

const struct route *
route_find(const char *method, const char *path, int64_t ids[ROUTE_IDS])
{
	size_t i;

	for (i = 0; i < COUNT(routes); i++) {
		if (pattern_matches(routes[i].pattern, method, path, ids))
			return &routes[i];
	}
	return NULL;
}
