/*
 * Decisions from pointer to verdict, against a scripted Basecamp: each row is
 * an event, what Basecamp answers, and the verdict that must reach the ledger
 * after exactly those reads (admission.md 1.5-1.11, 2.4, 11).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "intake/admission.h"
#include "intake/members.h"
#include "intake/verdict.h"
#include "tests/unit/intake_stage.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))
#define EVENT 101
#define MEMBER 777

#define SGID                                                                   \
	"eyJfcmFpbHMiOnsiZGF0YSI6ImdpZDovL2JjMy9QZXJzb24vNTIwMDc0MTIiLCJwdXIi" \
	"OiJhdHRhY2hhYmxlIn19"
#define MENTION "<bc-attachment sgid=\\\"" SGID "\\\"></bc-attachment>"

/* A recording; MORE overrides nothing and goes last. */
#define RECORDING(id, creator, more)                                         \
	"{\"id\":" #id ",\"status\":\"active\",\"app_url\":\"https://x/" #id \
	"\",\"bucket\":{\"id\":48699913,\"name\":\"Connector\"},"            \
	"\"creator\":{\"id\":" #creator ",\"name\":\"Who\","                 \
	"\"personable_type\":\"User\"},\"updated_at\":\"2026-01-05\"" more "}"
#define ASKED "\"content\":\"" MENTION " please\""
#define COMMENT(creator, more)                        \
	RECORDING(5, creator,                         \
	    ",\"type\":\"Comment\",\"title\":\"Re\"," \
	    "\"parent\":{\"id\":4}," more)

/* One event on an empty stage; it is not there yet for the ledger. */
static struct stage *
stage_with(const char *type, int64_t creator)
{
	struct stage *s = stage_new();

	s->undecided[0] = (struct msg_undecided){.found = true,
	    .event_id = EVENT,
	    .revision = 3,
	    .event_type = type,
	    .bucket_id = STAGE_PROJECT,
	    .creator_id = creator,
	    .recording_id = 5,
	    .actor_type = "",
	    .seen_at = "2026-01-05T09:00:00.000000000Z"};
	s->undecided_count = 1;
	return s;
}

/* As intake_configured(), but for the feed. */
static void
configure(struct stage *s, int64_t timeout_ms)
{
	policy_unref(s->in.policy);
	s->in.policy = policy_new(s->config);
	s->in.api.account_id = 999;
	s->in.api.timeout_ms = timeout_ms;
	admission_configure(s->in.admission);
}

static void
decide(struct stage *s)
{
	configure(s, 2000);
	stage_await(s, "VERDICT");
}

/* The journal without the lines about the token. */
static void
expect(struct stage *s, const char *text)
{
	static const char *const about[] = {
	    "token = waiting\n", "TOKEN 0\n", "token = held\n"};
	char *at;
	size_t i;

	for (i = 0; i < COUNT(about); i++) {
		at = strstr(s->journal.bytes, about[i]);
		if (at != NULL)
			memmove(at, at + strlen(about[i]),
			    strlen(at + strlen(about[i])) + 1);
	}
	stage_expect(s, text);
}

#define NOTHING "key= reply=:0 route= class="
#define HERE " route=/srv/site class=web"
#define BY_BOSS " requester=26909558"

/* ---- one read, or none --------------------------------------------------- */

static void
test_verdicts(void **state)
{
	static const struct {
		const char *type;
		int64_t creator;
		const char *path;
		const char *body; /* NULL: nothing is read */
		const char *want;
	} t[] = {
	    /* Without a read. */
	    {"what.ever", STAGE_OPERATOR, NULL, NULL,
		"discarded not_in_matrix trigger= " NOTHING
		" url= requester=26909558"},
	    {"comment.created", STAGE_AGENT, NULL, NULL,
		"discarded agent_authored trigger= " NOTHING
		" url= requester=52007412"},
	    {"comment.created", MEMBER, NULL, NULL,
		"discarded untrusted_performer trigger= " NOTHING
		" url= requester=777"},

	    /* Admitted, by type. */
	    {"comment.created", STAGE_OPERATOR, "comments/5",
		COMMENT(26909558, ASKED),
		"admitted trigger=mentioned ack key=recording:4 "
		"reply=comment:4" HERE " url=https://x/5" BY_BOSS},
	    {"message.created", STAGE_OPERATOR, "messages/5",
		RECORDING(5, 26909558, ",\"subject\":\"S\"," ASKED),
		"admitted trigger=mentioned ack key=recording:5 "
		"reply=comment:5" HERE " url=https://x/5" BY_BOSS},
	    {"todo.created", STAGE_OPERATOR, "todos/5",
		RECORDING(5, 26909558,
		    ",\"content\":\"t\","
		    "\"description\":\"" MENTION "\""),
		"admitted trigger=mentioned ack key=recording:5 "
		"reply=comment:5" HERE " url=https://x/5" BY_BOSS},
	    {"card.created", STAGE_OPERATOR, "card_tables/cards/5",
		RECORDING(5, 26909558,
		    ",\"content\":\"\","
		    "\"description\":\"" MENTION "\""),
		"admitted trigger=mentioned ack key=recording:5 "
		"reply=comment:5" HERE " url=https://x/5" BY_BOSS},

	    /* Not addressed, or by a rule that is not served. */
	    {"message.created", STAGE_OPERATOR, "messages/5",
		RECORDING(5, 26909558, ",\"content\":\"hello @Marie\""),
		"discarded not_addressed trigger= key= reply=:0" HERE
		" url=https://x/5" BY_BOSS},
	    {"todo.created", STAGE_OPERATOR, "todos/5", /* in the title */
		RECORDING(5, 26909558,
		    ",\"content\":\"" MENTION "\","
		    "\"title\":\"" MENTION "\",\"description\":\"\""),
		"discarded not_addressed trigger= key= reply=:0" HERE
		" url=https://x/5" BY_BOSS},
	    {"comment.created", STAGE_OPERATOR, "comments/5",
		COMMENT(26909558, "\"content\":\"no mention\""),
		"blocked rule_not_served trigger= key= reply=:0" HERE
		" url=https://x/5" BY_BOSS},
	    {"todo.assignment_changed", STAGE_OPERATOR, "todos/5",
		RECORDING(5, 26909558, ""),
		"blocked rule_not_served trigger= key= reply=:0" HERE
		" url=https://x/5" BY_BOSS},
	    {"card.completed", STAGE_OPERATOR, "card_tables/cards/5",
		RECORDING(5, 26909558, ""),
		"blocked rule_not_served trigger= key= reply=:0" HERE
		" url=https://x/5" BY_BOSS},

	    /* Authors. */
	    {"todo.created", STAGE_OPERATOR, "todos/5",
		RECORDING(5, 777, ",\"description\":\"" MENTION "\""),
		"discarded untrusted_author trigger= key= reply=:0" HERE
		" url=https://x/5" BY_BOSS},
	    {"todo.created", STAGE_OPERATOR, "todos/5",
		RECORDING(5, 52007412, ",\"description\":\"" MENTION "\""),
		"discarded agent_authored trigger= key= reply=:0" HERE
		" url=https://x/5" BY_BOSS},

	    /* What is stale, and what is not. */
	    {"comment.created", STAGE_OPERATOR, "comments/5",
		"{\"id\":5,\"status\":\"trashed\"}",
		"discarded stale trigger= " NOTHING " url=" BY_BOSS},
	    {"comment.created", STAGE_OPERATOR, "comments/5",
		"{\"id\":5,\"status\":\"drafted\",\"creator\":{\"id\":1}}",
		"discarded stale trigger= " NOTHING " url=" BY_BOSS},
	    {"message.created", STAGE_OPERATOR, "messages/5",
		"{\"id\":5,\"status\":\"archived\",\"creator\":"
		"{\"id\":26909558},\"content\":\"" MENTION "\"}",
		"admitted trigger=mentioned ack key=recording:5 "
		"reply=comment:5" HERE " url=" BY_BOSS},

	    /* Incomplete, or from elsewhere. */
	    {"comment.created", STAGE_OPERATOR, "comments/5",
		RECORDING(5, 26909558, "," ASKED),
		"blocked read_failed trigger= " NOTHING " url=" BY_BOSS
		" timed"},
	    {"message.created", STAGE_OPERATOR, "messages/5",
		"{\"id\":5," ASKED "}",
		"blocked read_failed trigger= " NOTHING " url=" BY_BOSS
		" timed"},
	    {"message.created", STAGE_OPERATOR, "messages/5",
		RECORDING(5, 0, "," ASKED),
		"blocked read_failed trigger= " NOTHING " url=" BY_BOSS
		" timed"},
	    {"message.created", STAGE_OPERATOR, "messages/5",
		"{\"id\":5,\"bucket\":{\"id\":7}," ASKED "}",
		"blocked bucket_mismatch trigger= " NOTHING " url=" BY_BOSS},
	};
	char want[512];
	struct stage *s;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		print_message("%zu: %s\n", i, t[i].want);
		s = stage_with(t[i].type, t[i].creator);
		if (t[i].body != NULL)
			stage_answer(s, t[i].path, 200, NULL, t[i].body);
		decide(s);
		*strchr(strstr(s->journal.bytes, "VERDICT"), '\n') = '\0';
		(void)snprintf(want, sizeof(want), "VERDICT 101 %s", t[i].want);
		assert_string_equal(strstr(s->journal.bytes, "VERDICT"), want);
		assert_int_equal(
		    stage_count(s, "GET"), t[i].body == NULL ? 0 : 1);
		stage_free(s);
	}
}

static void
test_snapshot(void **state)
{
	struct stage *s = stage_with("comment.created", STAGE_OPERATOR);

	(void)state;
	stage_answer(s, "comments/5", 200, NULL,
	    COMMENT(26909558,
		"\"content\":\"" MENTION "\\u009b \\ud83d"
		"\\ude00\""));
	decide(s);
	assert_non_null(strstr(s->journal.bytes,
	    "SNAPSHOT {\"type\":\"Comment\",\"title\":\"Re\","
	    "\"app_url\":\"https://x/5\",\"content\":\"" MENTION
	    "\\u009b \xf0\x9f\x98\x80\",\"updated_at\":\"2026-01-05\","
	    "\"project_name\":\"Connector\",\"requester_name\":\"Who\","
	    "\"role\":\"operator\",\"owner\":true}\n"));
	stage_free(s);
}

/* ---- configuration ------------------------------------------------------- */

static void
test_no_route(void **state)
{
	struct stage *s = stage_with("comment.created", STAGE_OPERATOR);

	(void)state;
	/* What answers the request stays; what was read does not. */
	s->undecided[0].bucket_id = 1;
	stage_answer(s, "comments/5", 200, NULL,
	    "{\"id\":5,\"app_url\":\"u\",\"parent\":{\"id\":4},"
	    "\"creator\":{\"id\":26909558}," ASKED "}");
	decide(s);
	expect(s,
	    "GET comments/5\n"
	    "VERDICT 101 blocked no_route trigger=mentioned ack "
	    "key=recording:4 reply=comment:4 route= class= url=u" BY_BOSS "\n");
	stage_free(s);

	/* A comment there that is not for us is nobody's. */
	s = stage_with("comment.created", STAGE_OPERATOR);
	s->undecided[0].bucket_id = 1;
	stage_answer(s, "comments/5", 200, NULL,
	    "{\"id\":5,\"parent\":{\"id\":4},\"creator\":{\"id\":26909558},"
	    "\"content\":\"x\"}");
	decide(s);
	assert_non_null(strstr(s->journal.bytes, "discarded not_addressed"));
	stage_free(s);
}

static void
test_unreadable(void **state)
{
	static const struct {
		const char *type;
		int64_t creator;
		const char *want;
	} t[] = {
	    {"comment.created", STAGE_OPERATOR, "blocked config_unreadable"},
	    {"card.completed", STAGE_OPERATOR, "blocked config_unreadable"},
	    {"comment.created", MEMBER, "discarded untrusted_performer"},
	    {"what.ever", STAGE_OPERATOR, "discarded not_in_matrix"},
	};
	struct stage *s;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		s = stage_with(t[i].type, t[i].creator);
		s->config->readable = false;
		decide(s);
		assert_non_null(strstr(s->journal.bytes, t[i].want));
		assert_int_equal(stage_count(s, "GET"), 0);
		stage_free(s);
	}
}

/* A decision ends with the configuration that it began with. */
static void
test_one_generation(void **state)
{
	struct stage *s = stage_with("comment.created", STAGE_OPERATOR);

	(void)state;
	configure(s, 100);
	stage_await(s, "GET"); /* which is not answered */
	s->config->routes[0].project_id = 1;
	s->config->operator_id = MEMBER;
	configure(s, 1000);
	stage_answer(s, "comments/5", 200, NULL, COMMENT(26909558, ASKED));
	stage_await(s, "VERDICT 101 admitted");
	assert_non_null(strstr(s->journal.bytes, HERE));
	stage_free(s);
}

/* ---- agents -------------------------------------------------------------- */

static void
test_named_agent(void **state)
{
	struct stage *s = stage_with("comment.created", 500);

	(void)state;
	config_ids_add(&s->config->agents, 500);
	stage_answer(s, "comments/5", 200, NULL, COMMENT(500, ASKED));
	decide(s);
	assert_non_null(strstr(s->journal.bytes, "blocked rule_not_served"));
	stage_free(s);

	s = stage_with("comment.created", 500);
	config_ids_add(&s->config->agents, 500);
	stage_answer(
	    s, "comments/5", 200, NULL, COMMENT(500, "\"content\":\"x\""));
	decide(s);
	assert_non_null(strstr(s->journal.bytes, "discarded not_addressed"));
	stage_free(s);
}

/* ---- reads that go wrong ------------------------------------------------- */

static void
test_failing_reads(void **state)
{
	static const struct {
		int status;
		const char *headers, *body;
		size_t attempts;
		const char *want;
	} t[] = {
	    {401, NULL, "", 1, "blocked read_failed"},
	    {403, NULL, "", 1, "blocked read_failed"},
	    {404, NULL, "", 1, "blocked read_failed"},
	    {500, NULL, "", 5, "blocked read_failed"},
	    {302, "Location: /x", "", 5, "blocked read_failed"},
	    {200, NULL, "half", 5, "blocked read_failed"},
	    {200, NULL, "[]", 5, "blocked read_failed"},
	    {200, NULL, "{\"id\":\"5\"}", 5, "blocked read_failed"},
	    {429, NULL, "", 5, "blocked read_failed"},
	    {429, "Retry-After: 600", "", 1, "blocked throttled"},
	    {503, "Retry-After: 600", "", 5, "blocked read_failed"},
	};
	struct stage *s;
	size_t i, n;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		print_message("%d %s\n", t[i].status, t[i].want);
		s = stage_with("comment.created", STAGE_OPERATOR);
		for (n = 0; n < 6; n++)
			stage_answer(s, "comments/5", t[i].status, t[i].headers,
			    t[i].body);
		decide(s);
		assert_non_null(strstr(s->journal.bytes, t[i].want));
		assert_int_equal(
		    stage_count(s, "GET comments/5"), t[i].attempts);
		assert_int_equal(stage_count(s, " retry_at timed"),
		    t[i].attempts == 1 && t[i].status == 429);
		stage_free(s);
	}
}

static void
test_recovers(void **state)
{
	struct stage *s = stage_with("comment.created", STAGE_OPERATOR);

	(void)state;
	stage_answer(s, "comments/5", 500, NULL, "");
	stage_answer(s, "comments/5", 429, "Retry-After: 1", "");
	stage_answer(s, "comments/5", 200, NULL, COMMENT(26909558, ASKED));
	decide(s);
	assert_non_null(strstr(s->journal.bytes, "VERDICT 101 admitted"));
	assert_int_equal(stage_count(s, "GET"), 3);
	stage_free(s);
}

static void
test_network(void **state)
{
	struct stage *s = stage_with("comment.created", STAGE_OPERATOR);

	(void)state;
	evhttp_free(s->server); /* nobody is there */
	s->server = evhttp_new(s->role.base);
	decide(s);
	assert_non_null(strstr(s->journal.bytes, "blocked read_failed"));
	stage_free(s);
}

/* Two reads of one decision share the patience with a 429. */
static void
test_budget(void **state)
{
	struct stage *s = stage_with("todo.created", MEMBER);

	(void)state;
	(void)snprintf(
	    s->config->trust_mode, sizeof(s->config->trust_mode), "project");
	s->config->limits[LIMIT_throttle_budget] = 1500;
	stage_answer(
	    s, "projects/48699913/people.json", 429, "Retry-After: 1", "");
	stage_answer(s, "projects/48699913/people.json", 200, NULL,
	    "[{\"id\":777,\"client\":false,\"personable_type\":\"User\"}]");
	stage_answer(s, "todos/5", 429, "Retry-After: 1", "");
	decide(s);
	expect(s,
	    "GET projects/48699913/people.json\n"
	    "GET projects/48699913/people.json\n"
	    "GET todos/5\n"
	    "VERDICT 101 blocked throttled trigger= key= reply=:0 "
	    "route= class= url= requester=777 retry_at timed\n");
	stage_free(s);
}

/* ---- members ------------------------------------------------------------- */

#define PERSON(id, client, type)                                             \
	"{\"id\":" #id ",\"client\":" #client ",\"personable_type\":\"" type \
	"\"}"

static void
test_project_mode(void **state)
{
	static const struct {
		int64_t performer;
		const char *people;
		const char *author;
		const char *want;
	} t[] = {
	    {MEMBER, "[" PERSON(777, false, "User") "]", "777",
		"admitted trigger=mentioned ack key=recording:5 "
		"reply=comment:5" HERE " url=https://x/5 requester=777"},
	    {MEMBER, "[" PERSON(777, true, "User") "]", "777",
		"discarded untrusted_performer"},
	    {MEMBER, "[" PERSON(777, false, "Agent") "]", "777",
		"discarded untrusted_performer"},
	    {MEMBER, "[{\"id\":777}]", "777", "discarded untrusted_performer"},
	    {MEMBER, "[]", "777", "discarded untrusted_performer"},
	    {MEMBER, "{}", "777", "blocked read_failed"},
	    /* A member's words that the operator moved stay the member's. */
	    {STAGE_OPERATOR, "[" PERSON(777, false, "User") "]", "777",
		"admitted trigger=mentioned ack key=recording:5 "
		"reply=comment:5" HERE " url=https://x/5 requester=777"},
	    {STAGE_OPERATOR, "[]", "777", "discarded untrusted_author"},
	    /* The operator's words that a member moved are a member's ask. */
	    {MEMBER, "[" PERSON(777, false, "User") "]", "26909558",
		"admitted trigger=mentioned ack key=recording:5 "
		"reply=comment:5" HERE " url=https://x/5 requester=777"},
	};
	struct stage *s;
	char body[1024];
	size_t i, n;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		print_message("%zu: %s\n", i, t[i].want);
		s = stage_with("todo.created", t[i].performer);
		(void)snprintf(s->config->trust_mode,
		    sizeof(s->config->trust_mode), "project");
		for (n = 0; n < 5; n++)
			stage_answer(s, "projects/48699913/people.json", 200,
			    NULL, t[i].people);
		(void)snprintf(body, sizeof(body),
		    "{\"id\":5,\"app_url\":\"https://x/5\",\"creator\":"
		    "{\"id\":%s},\"description\":\"" MENTION "\"}",
		    t[i].author);
		stage_answer(s, "todos/5", 200, NULL, body);
		decide(s);
		assert_non_null(strstr(s->journal.bytes, t[i].want));
		if (strstr(t[i].want, "admitted") != NULL)
			assert_non_null(strstr(s->journal.bytes,
			    "\"role\":\"participant\",\"owner\":false"));
		stage_free(s);
	}
}

static void
test_people_pages(void **state)
{
	struct stage *s = stage_with("todo.created", MEMBER);

	(void)state;
	(void)snprintf(
	    s->config->trust_mode, sizeof(s->config->trust_mode), "project");
	/* Fewer than the total is no list; then two pages are. */
	stage_answer(s, "projects/48699913/people.json", 200,
	    "X-Total-Count: 2", "[" PERSON(1, false, "User") "]");
	stage_answer(s, "projects/48699913/people.json", 200,
	    "X-Total-Count: 2\nLink: <@/projects/48699913/people.json?page=2>"
	    "; rel=\"next\"",
	    "[" PERSON(1, false, "User") "]");
	stage_answer(s, "projects/48699913/people.json?page=2", 200, NULL,
	    "[" PERSON(777, false, "User") "]");
	stage_answer(s, "todos/5", 200, NULL,
	    RECORDING(5, 777, ",\"description\":\"" MENTION "\""));
	decide(s);
	assert_non_null(strstr(s->journal.bytes, "VERDICT 101 admitted"));
	assert_int_equal(stage_count(s, "GET projects"), 3);
	stage_free(s);
}

/* A page of a list that lies elsewhere is not asked for: the token stays. */
static void
test_people_elsewhere(void **state)
{
	struct stage *s = stage_with("todo.created", MEMBER);
	char link[160];
	int i;

	(void)state;
	(void)snprintf(
	    s->config->trust_mode, sizeof(s->config->trust_mode), "project");
	/* The same server under another name: it would hear of it. */
	(void)snprintf(link, sizeof(link),
	    "Link: <http://localhost%s/999/elsewhere>; rel=\"next\"",
	    strrchr(s->base_url, ':'));
	for (i = 0; i < 5; i++)
		stage_answer(
		    s, "projects/48699913/people.json", 200, link, "[]");
	decide(s);
	assert_non_null(strstr(s->journal.bytes, "blocked read_failed"));
	assert_int_equal(stage_count(s, "GET projects"), 5);
	assert_int_equal(stage_count(s, "GET elsewhere"), 0);
	stage_free(s);
}

static int64_t now_s;

static void
clock_at(clockid_t id, struct timespec *out)
{
	(void)id;
	*out = (struct timespec){now_s, 0};
}

#define S INT64_C(1000000000)

static void
test_member_look(void **state)
{
	static const struct clock_source source = {clock_at};
	struct list_item items[] = {{MEMBER, 1}};
	struct list list = {.items = items,
	    .count = 1,
	    .is_loaded = true,
	    .started_ns = 1000 * S,
	    .started_ms = 1000000};
	static const struct {
		int64_t now, person, seen;
		enum member_says want;
	} t[] = {
	    {1000, MEMBER, 1100, MEMBER_YES},
	    {1600, MEMBER, 1600, MEMBER_YES},
	    {1010, 1, 999, MEMBER_NO},
	    {1010, 1, 1000, MEMBER_NO},
	    {1010, 1, 1001, MEMBER_UNVERIFIED},
	    {1029, 1, 1001, MEMBER_UNVERIFIED},
	    {1030, 1, 1001, MEMBER_ASK},
	};
	size_t i;

	(void)state;
	assert_int_equal(member_look(NULL, MEMBER, 0), MEMBER_ASK);
	clock_set_source(&source);
	for (i = 0; i < COUNT(t); i++) {
		now_s = t[i].now;
		assert_int_equal(
		    member_look(&list, t[i].person, t[i].seen * S), t[i].want);
	}
	clock_set_source(NULL);
}

/* ---- chat lines ---------------------------------------------------------- */

#define DOCK(tools) "{\"id\":48699913,\"dock\":[" tools "]}"
#define TOOL(id) "{\"id\":" #id ",\"name\":\"chat\"}"
#define LINE(type) \
	RECORDING(5, 26909558, ",\"type\":\"Chat::Lines::" type "\"," ASKED)
#define IN_CHAT "key=campfire:31 reply=chat_line:31"

static void
test_line_in_dock(void **state)
{
	struct stage *s = stage_with("chat.line.created", STAGE_OPERATOR);

	(void)state;
	stage_answer(s, "projects/48699913", 200, NULL,
	    DOCK(TOOL(30) ",{\"id\":9,\"name\":\"vault\"}," TOOL(31)));
	stage_answer(s, "chats/30/lines/5", 404, NULL, "");
	stage_answer(s, "chats/31/lines/5", 200, NULL, LINE("RichText"));
	decide(s);
	assert_non_null(strstr(s->journal.bytes,
	    "GET projects/48699913\nGET chats/30/lines/5\n"
	    "GET chats/31/lines/5\n"
	    "VERDICT 101 admitted trigger=mentioned ack " IN_CHAT));
	stage_free(s);
}

static void
test_line_in_listing(void **state)
{
	struct stage *s = stage_with("chat.line.created", STAGE_OPERATOR);

	(void)state;
	/* A project without a dock, and one chat of another bucket. */
	stage_answer(s, "projects/48699913", 404, NULL, "");
	stage_answer(s, "chats.json", 200, NULL,
	    "[{\"id\":30,\"bucket\":{\"id\":1}},"
	    "{\"id\":31,\"bucket\":{\"id\":48699913}}]");
	stage_answer(s, "chats/31/lines/5", 200, NULL, LINE("RichText"));
	decide(s);
	assert_non_null(strstr(s->journal.bytes, IN_CHAT));
	assert_int_equal(stage_count(s, "GET"), 3);
	stage_free(s);
}

static void
test_line_nowhere(void **state)
{
	struct stage *s = stage_with("chat.line.created", STAGE_OPERATOR);

	(void)state;
	stage_answer(s, "projects/48699913", 200, NULL, DOCK(TOOL(30)));
	stage_answer(s, "chats/30/lines/5", 404, NULL, "");
	stage_answer(s, "chats.json", 200, NULL,
	    "[{\"id\":30,\"bucket\":{\"id\":48699913}}]");
	decide(s);
	/* Each is asked once, and that is an answer: no second attempt. */
	expect(s,
	    "GET projects/48699913\nGET chats/30/lines/5\n"
	    "GET chats.json\n"
	    "VERDICT 101 blocked read_unresolved trigger= " NOTHING
	    " url=" BY_BOSS " timed\n");
	stage_free(s);
}

static void
test_line_failure_is_the_answer(void **state)
{
	struct stage *s = stage_with("chat.line.created", STAGE_OPERATOR);

	(void)state;
	stage_answer(
	    s, "projects/48699913", 200, NULL, DOCK(TOOL(30) "," TOOL(31)));
	stage_answer(s, "chats/30/lines/5", 403, NULL, "");
	decide(s);
	assert_non_null(strstr(s->journal.bytes, "blocked read_failed"));
	assert_int_equal(stage_count(s, "GET"), 2);
	stage_free(s);
}

static void
test_line_types(void **state)
{
	static const struct {
		const char *body, *want;
	} t[] = {
	    {LINE("Text"), "discarded not_addressed"},
	    {LINE("Code"), "discarded not_addressed"},
	    {LINE("Upload"), "discarded not_addressed"},
	    {LINE("Integration"), "admitted"},
	};
	struct stage *s;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		s = stage_with("chat.line.created", STAGE_OPERATOR);
		stage_answer(s, "projects/48699913", 200, NULL, DOCK(TOOL(31)));
		stage_answer(s, "chats/31/lines/5", 200, NULL, t[i].body);
		decide(s);
		assert_non_null(strstr(s->journal.bytes, t[i].want));
		stage_free(s);
	}
}

static void
test_too_many_chats(void **state)
{
	struct stage *s = stage_with("chat.line.created", STAGE_OPERATOR);
	struct buffer b = {0};
	int i;

	(void)state;
	s->config->limits[LIMIT_read_attempts] = 2;
	for (i = 0; i < 51; i++)
		buffer_printf(&b, "%s{\"id\":%d,\"name\":\"chat\"}",
		    i > 0 ? "," : "{\"id\":48699913,\"dock\":[", i + 100);
	buffer_add_text(&b, "]}");
	stage_answer(s, "projects/48699913", 200, NULL, b.bytes);
	for (i = 0; i < 100; i++)
		stage_answer(s, "chats/", 404, NULL, "");
	decide(s);
	/* One is left untried: not known to be nowhere. */
	assert_non_null(strstr(s->journal.bytes, "blocked read_failed"));
	assert_int_equal(stage_count(s, "GET chats/"), 100);
	buffer_free(&b);
	stage_free(s);
}

/* ---- the walk ------------------------------------------------------------ */

static void
test_several_at_once(void **state)
{
	struct stage *s = stage_with("comment.created", STAGE_OPERATOR);
	char path[32];
	int i;

	(void)state;
	s->config->limits[LIMIT_admission_workers] = 2;
	s->undecided_count = 4;
	for (i = 0; i < 4; i++) {
		s->undecided[i] = s->undecided[0];
		s->undecided[i].event_id = EVENT + i;
		s->undecided[i].recording_id = 5 + i;
	}
	configure(s, 1500);
	stage_await(s, "GET comments/5");
	stage_await(s, "GET comments/6");
	stage_linger(s, 50);
	/* Two hang, the others are not begun. */
	assert_int_equal(stage_count(s, "GET comments/"), 2);
	for (i = 0; i < 4; i++) {
		(void)snprintf(path, sizeof(path), "comments/%d", 5 + i);
		stage_answer(s, path, 200, NULL, COMMENT(26909558, ASKED));
	}
	for (i = 0; i < 4; i++) {
		(void)snprintf(path, sizeof(path), "VERDICT %d", EVENT + i);
		stage_await(s, path);
	}
	stage_free(s);
}

/*
 * What was in hand when an intake died goes with nothing beside it: it waits
 * for the others, and they for it.
 */
static void
test_suspect_goes_alone(void **state)
{
	struct stage *s = stage_with("comment.created", STAGE_OPERATOR);
	int i;

	(void)state;
	s->config->limits[LIMIT_admission_workers] = 4;
	s->undecided_count = 4;
	for (i = 0; i < 4; i++) {
		s->undecided[i] = s->undecided[0];
		s->undecided[i].event_id = EVENT + i;
		s->undecided[i].recording_id = 5 + i;
	}
	s->undecided[1].suspect = true;
	configure(s, 1500);
	stage_await(s, "GET comments/5");
	stage_linger(s, 50);
	assert_int_equal(stage_count(s, "GET comments/"), 1);
	assert_int_equal(s->hand_count, 1);
	stage_answer(s, "comments/5", 200, NULL, COMMENT(26909558, ASKED));
	stage_await(s, "GET comments/6");
	stage_linger(s, 50);
	assert_int_equal(stage_count(s, "GET comments/7"), 0);
	assert_int_equal(s->hand_count, 1);
	assert_int_equal(s->hand[0], EVENT + 1);
	stage_answer(s, "comments/6", 200, NULL, COMMENT(26909558, ASKED));
	stage_await(s, "GET comments/7");
	stage_await(s, "GET comments/8");
	assert_int_equal(s->hand_count, 2);
	stage_free(s);
}

/* The ledger says when the next one is due; nobody offers it. */
static void
test_timed_retry(void **state)
{
	struct stage *s = stage_with("what.ever", STAGE_OPERATOR);

	(void)state;
	s->undecided_count = 0;
	s->retry_in_ms = 400;
	configure(s, 100);
	stage_linger(s, 20);
	s->undecided_count = 1;
	stage_linger(s, 10);
	stage_expect(s, "");
	stage_await(s, "VERDICT 101 discarded");
	stage_free(s);
}

/* ---- verdicts ------------------------------------------------------------ */

static void
test_schedule(void **state)
{
	static const struct {
		const char *reason;
		int64_t since, retry_at, want;
	} t[] = {
	    /* now 100000, every 600, for 86400 */
	    {"read_failed", 100000, 0, 100600},
	    {"read_unresolved", 14200, 0, 100600},
	    {"read_unresolved", 14199, 0, 0},
	    {"delta_unverified", 100000, 0, 100600},
	    {"trust_unverified", 14199, 0, 0},
	    {"throttled", 100000, 100100, 100600},
	    {"throttled", 100000, 101000, 101000},
	    {"throttled", 100000, 186400, 186400},
	    {"throttled", 100000, 186401, 0},
	    {"config_unreadable", 0, 0, 100600},
	    {"bucket_mismatch", 100000, 0, 0},
	    {"unroutable", 100000, 0, 0},
	    {"no_route", 100000, 0, 0},
	    {"rule_not_served", 100000, 0, 0},
	    {"what else", 100000, 0, 0},
	};
	struct retry_clock c = {
	    .now = 100000, .interval = 600, .window = 86400};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		print_message("%zu: %s\n", i, t[i].reason);
		c.since = t[i].since;
		c.retry_at = t[i].retry_at;
		assert_int_equal(
		    verdict_next_retry(t[i].reason, &c), t[i].want);
	}
}

/* The window runs from the first verdict of one reason, not from each. */
static void
test_window_of_a_reason(void **state)
{
	static const struct {
		const char *blocked_for;
		int64_t days_ago;
		bool is_tried_again;
	} t[] = {{"", 0, true}, {"read_failed", 0, true},
	    {"read_failed", 2, false}, {"config_unreadable", 2, true}};
	struct verdict v = {.state = VERDICT_BLOCKED, .reason = "read_failed"};
	struct config *c = config_new();
	struct verdict_stamps stamps;
	struct msg_verdict m;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		struct pointer p = {.event_id = 1};

		(void)snprintf(p.blocked_for, sizeof(p.blocked_for), "%s",
		    t[i].blocked_for);
		p.blocked_since_ns = clock_wall_ns() -
		    t[i].days_ago * INT64_C(86400) * 1000000000;
		verdict_fill(&v, &p, c->limits, &stamps, &m);
		assert_int_equal(t[i].is_tried_again, *m.next_retry_at != '\0');
	}
	config_free(c);
}

/* However long, and however it is written: it fits the message. */
static void
test_snapshot_bound(void **state)
{
	static const char chars[] = {'a', '\x01', '"'};
	struct summary s = {0};
	struct snapshot_facts facts = {.summary = &s};
	struct buffer b;
	char *text;
	size_t i, len = 6 * 1024 * 1024;

	(void)state;
	text = malloc(len + 1);
	assert_non_null(text);
	s.type = s.title = s.app_url = s.updated_at = s.project_name =
	    s.creator_name = (struct json_text){.bytes = ""};
	for (i = 0; i < COUNT(chars); i++) {
		memset(text, chars[i], len);
		text[len] = '\0';
		s.content = (struct json_text){text, len, false};
		s.title = s.content;
		b = (struct buffer){0};
		verdict_snapshot(&b, &facts);
		assert_true(b.len <= SNAPSHOT_MAX);
		assert_true(b.len > SNAPSHOT_MAX / 4);
		assert_non_null(strstr(b.bytes, "\"content_truncated\":true"));
		buffer_free(&b);
	}
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_verdicts),
	    cmocka_unit_test(test_snapshot),
	    cmocka_unit_test(test_no_route),
	    cmocka_unit_test(test_unreadable),
	    cmocka_unit_test(test_one_generation),
	    cmocka_unit_test(test_named_agent),
	    cmocka_unit_test(test_failing_reads),
	    cmocka_unit_test(test_recovers),
	    cmocka_unit_test(test_network),
	    cmocka_unit_test(test_budget),
	    cmocka_unit_test(test_project_mode),
	    cmocka_unit_test(test_people_pages),
	    cmocka_unit_test(test_people_elsewhere),
	    cmocka_unit_test(test_member_look),
	    cmocka_unit_test(test_line_in_dock),
	    cmocka_unit_test(test_line_in_listing),
	    cmocka_unit_test(test_line_nowhere),
	    cmocka_unit_test(test_line_failure_is_the_answer),
	    cmocka_unit_test(test_line_types),
	    cmocka_unit_test(test_too_many_chats),
	    cmocka_unit_test(test_several_at_once),
	    cmocka_unit_test(test_suspect_goes_alone),
	    cmocka_unit_test(test_timed_retry),
	    cmocka_unit_test(test_schedule),
	    cmocka_unit_test(test_window_of_a_reason),
	    cmocka_unit_test(test_snapshot_bound),
	};
	struct error e;

	log_init("test_decide", LOG_LEVEL_ERROR);
	if (http_prepare(&e) == -1)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
