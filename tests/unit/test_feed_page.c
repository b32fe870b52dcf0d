/* What the poll lane asks and is told, by tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "intake/admission.h"
#include "intake/entry.h"
#include "intake/feed.h"
#include "intake/poll.h"
#include "tests/unit/intake_stage.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

/* ---- names -------------------------------------------------------------- */

static void
test_digests(void **state)
{
	static const struct {
		const char *query; /* that says the same */
		const char *digest;
	} t[] = {
	    {"", "44136fa355b3678a"},
	    {"types=message.created", "38b223c13c89dc89"},
	    {"types=todo.completed,message.created&buckets=2,1",
		"90108e436c72bfd1"},
	    {"types=message.created,todo.completed,message.created&buckets="
	     "1,2,1&creators=9",
		"5d0b83594d8e5630"},
	    {"buckets=1", "e545e11ffb55966a"},
	    {"performers=9", "97c45ef5d7ed59c2"},
	    {"exclude_performers=9", "e52acfcd22b34d9e"},
	    {"actor_types=agent", "cfcc84d9873823db"},
	    {"actor_types=person&exclude_performers=52007412",
		"ecd6953cd6b9532a"},
	    {"exclude_performers=52007412&buckets=48699913&actor_types="
	     "person",
		"bbc37141f58ae624"},
	};
	char got[FILTER_DIGEST_SIZE];
	struct filters f = {0};
	struct url_query q;
	int64_t i;

	(void)state;
	for (i = 0; i < (int64_t)COUNT(t); i++) {
		assert_int_equal(
		    url_query_parse(t[i].query, strlen(t[i].query), &q, NULL),
		    0);
		assert_int_equal(filters_of_query(&f, &q), 0);
		filters_digest(&f, got);
		assert_string_equal(got, t[i].digest);
		filters_free(&f);
		url_query_free(&q);
	}
	for (i = 100; i > 0; i--)
		filters_add_id(&f, FILTER_BUCKETS, i);
	filters_digest(&f, got);
	assert_string_equal(got, "e2acd9c77b72cd99");
	filters_free(&f);
}

static void
test_foul_filters(void **state)
{
	static const char *const t[] = {"buckets=1,x", "buckets=0",
	    "buckets=-1", "buckets=,1", "creators=9223372036854775808",
	    "performers=self", "buckets=1&buckets=2"};
	struct url_query q;
	struct filters f;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		assert_int_equal(
		    url_query_parse(t[i], strlen(t[i]), &q, NULL), 0);
		assert_int_equal(filters_of_query(&f, &q), -1);
		url_query_free(&q);
	}
}

static void
test_keys(void **state)
{
	struct config *c = config_new();
	struct feed_key key, other;
	struct filters f;
	struct error e;
	int64_t i;

	(void)state;
	c->account_id = 999;
	c->agent_id = STAGE_AGENT;
	assert_int_equal(filters_of_config(&f, c, &e), 0);
	feed_key_make(&key, "https://3.basecampapi.com", c, &f);
	filters_free(&f);
	assert_string_equal(key.flat,
	    "[\"https://3.basecampapi.com\",\"999\","
	    "\"basecamp-connect-52007412\",\"srv2-ecd6953cd6b9532a\"]");
	assert_string_equal(key.lineage,
	    "[\"https://3.basecampapi.com\",\"999\","
	    "\"basecamp-connect-52007412\",\"\"]");
	config_ids_add(&c->scope, STAGE_PROJECT);
	assert_int_equal(filters_of_config(&f, c, &e), 0);
	feed_key_make(&other, "https://3.basecampapi.com", c, &f);
	filters_free(&f);
	assert_non_null(strstr(other.flat, "srv2-bbc37141f58ae624"));
	assert_string_equal(other.lineage, key.lineage);
	feed_key_free(&other);
	/* An agent that the operator named must be heard of. */
	config_ids_add(&c->agents, 4);
	assert_int_equal(filters_of_config(&f, c, &e), 0);
	feed_key_make(&other, "https://3.basecampapi.com", c, &f);
	filters_free(&f);
	assert_non_null(strstr(other.flat, "srv2-9296153c2409e233"));
	feed_key_free(&key);
	feed_key_free(&other);
	for (i = 1; i <= FILTER_IDS_MAX; i++)
		config_ids_add(&c->scope, i);
	assert_int_equal(filters_of_config(&f, c, &e), -1);
	config_free(c);
}

/* ---- cursors ------------------------------------------------------------ */

static void
test_queries(void **state)
{
	struct cursor c = {0};
	struct filters f = {0};
	struct buffer b = {0};

	(void)state;
	filters_add_word(&f, FILTER_ACTOR_TYPES, "person");
	filters_add_word(&f, FILTER_TYPES, "z");
	filters_add_id(&f, FILTER_BUCKETS, 20);
	filters_add_id(&f, FILTER_BUCKETS, 3);
	filters_add_id(&f, FILTER_EXCLUDE_PERFORMERS, STAGE_AGENT);

	cursor_write_query(&c, &f, &b);
	assert_string_equal(b.bytes,
	    "actor_types=person&buckets=3%2C20&exclude_performers=52007412"
	    "&types=z");
	buffer_free(&b);
	b = (struct buffer){0};
	cursor_set_position(&c, "a+b/c==&d");
	cursor_write_query(&c, &f, &b);
	assert_string_equal(b.bytes,
	    "actor_types=person&buckets=3%2C20&exclude_performers=52007412"
	    "&position=a%2Bb%2Fc%3D%3D%26d&types=z");
	buffer_free(&b);
	b = (struct buffer){0};
	cursor_set_since(&c, 0);
	cursor_write_query(&c, &f, &b);
	assert_non_null(strstr(b.bytes, "&since=0&types=z"));
	buffer_free(&b);
	cursor_free(&c);
	filters_free(&f);
}

#define HERE "https://3.basecampapi.com/999/events.json"

static void
test_follow(void **state)
{
	static const struct {
		const char *url;
		enum cursor_follow want;
		const char *query;
		bool is_present;
	} t[] = {
	    {HERE "?position=p1", FOLLOW_OK, "position=p1", false},
	    {HERE "?exclude_performers=9&position=a%2Fb", FOLLOW_OK,
		"exclude_performers=9&position=a%2Fb", false},
	    {"HTTPS://3.BasecampAPI.com:443/1/other?since=now&types=x,a",
		FOLLOW_OK, "since=now&types=a%2Cx", true},
	    {HERE "?since=12&what=ever", FOLLOW_OK, "since=12", false},
	    {HERE "?since=0", FOLLOW_OK, "since=0", false},
	    {HERE "?since=&position=p", FOLLOW_OK, "position=p", false},
	    {HERE "?since=1&position=p", FOLLOW_UNUSABLE, NULL, false},
	    {HERE "?position=", FOLLOW_UNUSABLE, NULL, false},
	    {HERE, FOLLOW_UNUSABLE, NULL, false},
	    {HERE "?position=p&position=q", FOLLOW_UNUSABLE, NULL, false},
	    {HERE "?position=p&x=%zz", FOLLOW_UNUSABLE, NULL, false},
	    {HERE "?position=p;q", FOLLOW_UNUSABLE, NULL, false},
	    {HERE "?position=p%00q", FOLLOW_UNUSABLE, NULL, false},
	    {HERE "?position=p&buckets=x", FOLLOW_UNUSABLE, NULL, false},
	    {HERE "?since=-1", FOLLOW_UNUSABLE, NULL, false},
	    {HERE "?since=soon", FOLLOW_UNUSABLE, NULL, false},
	    {"https://evil.example/999/events.json?position=p", FOLLOW_FOREIGN,
		NULL, false},
	    {"http://3.basecampapi.com/?position=p", FOLLOW_FOREIGN, NULL,
		false},
	    {"https://3.basecampapi.com:444/?position=p", FOLLOW_FOREIGN, NULL,
		false},
	    {"https://u@3.basecampapi.com/?position=p", FOLLOW_FOREIGN, NULL,
		false},
	    {"/999/events.json?position=p", FOLLOW_FOREIGN, NULL, false},
	    {"https://3.basecampapi.com/\xff?position=p", FOLLOW_FOREIGN, NULL,
		false},
	    {"", FOLLOW_FOREIGN, NULL, false},
	};
	struct filters none = {0};
	struct cursor c = {0};
	struct buffer b;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		print_message("%s\n", t[i].url);
		cursor_set_since(&c, 77);
		assert_int_equal(cursor_follow(&c, t[i].url, strlen(t[i].url),
				     "https://3.basecampapi.com"),
		    t[i].want);
		b = (struct buffer){0};
		cursor_write_query(&c, &none, &b);
		assert_string_equal(
		    b.bytes, t[i].want == FOLLOW_OK ? t[i].query : "since=77");
		assert_int_equal(cursor_is_present(&c), t[i].is_present);
		buffer_free(&b);
	}
	cursor_free(&c);
}

/* ---- entries ------------------------------------------------------------ */

static void
test_entries(void **state)
{
	static const struct {
		struct entry_facts facts;
		const char *query;
		bool is_replaying, is_first;
	} t[] = {
	    /* since, saved, reentry, position, served, lineage, has */
	    {{7, false, false, "p", 5, 6, true}, "since=7", false, false},
	    {{7, false, true, "p", 5, 6, true}, "since=7", false, false},
	    {{7, true, false, "p", 5, 6, true}, "position=p", false, false},
	    {{0, false, true, "p", 5, 6, true}, "since=5", false, false},
	    {{0, false, true, "", 0, 6, true}, "since=0", true, false},
	    {{0, false, true, "", 0, 0, false}, "since=0", true, false},
	    {{0, false, false, "p", 5, 6, true}, "position=p", false, false},
	    {{0, false, false, "p", 0, 0, false}, "position=p", false, false},
	    {{0, false, false, "", 5, 6, true}, "since=5", false, false},
	    {{0, false, false, "", 0, 6, true}, "since=6", false, false},
	    {{0, false, false, "", 0, 0, true}, "since=0", true, false},
	    {{0, false, false, "", 0, 0, false}, "", false, true},
	    {{7, true, false, "", 0, 0, false}, "", false, true},
	};
	struct filters none = {0};
	struct cursor c = {0};
	struct entry got;
	struct buffer b;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		print_message("entry %zu\n", i);
		got = entry_choose(&t[i].facts, &c);
		b = (struct buffer){0};
		cursor_write_query(&c, &none, &b);
		assert_string_equal(b.bytes != NULL ? b.bytes : "", t[i].query);
		assert_int_equal(got.is_replaying, t[i].is_replaying);
		assert_int_equal(got.is_first, t[i].is_first);
		buffer_free(&b);
	}
	cursor_free(&c);
}

/* ---- answers ------------------------------------------------------------ */

static void
test_matrix(void **state)
{
	static const struct {
		int status;
		int64_t retry_after;
		const char *body;
		enum poll_kind want;
	} t[] = {
	    {200, 0, "{\"events\":[],\"position\":\"p\"}", POLL_PAGE},
	    {200, 9, "{\"events\":[],\"position\":\"p\"}", POLL_PAGE},
	    {200, 0, "", POLL_MALFORMED},
	    {204, 0, "", POLL_UNRECOVERABLE},
	    {301, 0, "", POLL_REDIRECT},
	    {304, 0, "", POLL_REDIRECT},
	    {400, 0, POSITION_400, POLL_POSITION_INVALID},
	    {400, 0, "{\"error\":\"x\",\"reason\":\"invalid_filter\"}",
		POLL_FILTER_INVALID},
	    {400, 0, "{\"error\":\"x\",\"reason\":\"other\"}", POLL_MALFORMED},
	    {400, 0, "{\"error\":\"x\",\"reason\":7}", POLL_MALFORMED},
	    {400, 0, "{\"reason\":\"invalid_filter\"}", POLL_MALFORMED},
	    {400, 0, "{\"error\":7}", POLL_MALFORMED},
	    {400, 0, "[]", POLL_MALFORMED},
	    {400, 0, "no json", POLL_MALFORMED},
	    {400, 0, "{\"error\":\"Unrecognized position\"}",
		POLL_POSITION_INVALID},
	    {400, 0,
		"{\"error\":\"Unrecognized position xyz\",\"reason\":"
		"null}",
		POLL_POSITION_INVALID},
	    {400, 0, "{\"status\":400,\"error\":\"Bad Request\"}",
		POLL_FILTER_INVALID},
	    {401, 0, "", POLL_UNAUTHORIZED},
	    {403, 5, "", POLL_UNAUTHORIZED},
	    {404, 0, "", POLL_UNRECOVERABLE},
	    {405, 0, "", POLL_UNRECOVERABLE},
	    {409, 0,
		"{\"error\":\"x\",\"position_digest\":" D16
		",\"filters_digest\":" D16 "}",
		POLL_FILTER_CHANGED},
	    {409, 0,
		"{\"error\":\"x\",\"position_digest\":" D16
		",\"filters_digest\":\"0123456789ABCDEF\"}",
		POLL_MALFORMED},
	    {409, 0, "{\"error\":\"x\",\"position_digest\":" D16 "}",
		POLL_MALFORMED},
	    {409, 0, "", POLL_MALFORMED},
	    {410, 0,
		"{\"error\":\"x\",\"epoch_after_id\":9,\"resume\":\"u\""
		"}",
		POLL_GONE},
	    {410, 0,
		"{\"error\":\"x\",\"epoch_after_id\":0,\"resume\":\"u\""
		"}",
		POLL_GONE},
	    {410, 0, "{\"error\":\"x\",\"resume\":\"u\"}", POLL_MALFORMED},
	    {410, 0, "{\"epoch_after_id\":null,\"resume\":\"u\"}",
		POLL_MALFORMED},
	    {410, 0, "{\"epoch_after_id\":1.5,\"resume\":\"u\"}",
		POLL_MALFORMED},
	    {410, 0, "{\"epoch_after_id\":9}", POLL_MALFORMED},
	    {410, 0, "{\"epoch_after_id\":9,\"resume\":\"\"}", POLL_MALFORMED},
	    {422, 0, "", POLL_UNRECOVERABLE},
	    {429, 0, "", POLL_TRANSIENT},
	    {429, 7, "", POLL_THROTTLED},
	    {500, 0, "", POLL_TRANSIENT},
	    {500, 7, "", POLL_THROTTLED},
	    {503, 0, "", POLL_TRANSIENT},
	    {504, 0, "", POLL_TRANSIENT},
	    {507, 7, "", POLL_UNRECOVERABLE},
	    {599, 0, "", POLL_TRANSIENT},
	};
	struct http_answer http = {.outcome = HTTP_ANSWERED};
	struct poll_result r;
	json_t *tree;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		print_message("%d %s\n", t[i].status, t[i].body);
		r = (struct poll_result){0};
		http.status = t[i].status;
		http.retry_after = t[i].retry_after;
		http.body = t[i].body;
		http.body_len = strlen(t[i].body);
		poll_classify(&http, &r, &tree);
		assert_int_equal(r.kind, t[i].want);
		if (r.kind == POLL_THROTTLED)
			assert_int_equal(r.retry_after_ms, 7000);
		assert_int_equal(poll_is_retried(t[i].status),
		    t[i].status == 429 || t[i].status == 503);
		page_free(r.page);
		json_decref(tree);
	}
}

/* ---- pages -------------------------------------------------------------- */

static void
test_page(void **state)
{
	static const char details[] = "{\"a\": 1, \"a\":\"\xef\xbf\xbd\"}";
	static const char body[] =
	    PAGE(ROW("9007199254740993") "," ROW_BUT("7",
		     ",\"performed_by_id\":4,\"x\":[],"
		     "\"actor_type\":\"person\","
		     "\"details\" : {\"a\": 1, \"a\":\"\xef\xbf\xbd\"}"),
		",\"next\":\"u\",\"later\":{}");
	struct page *p;
	struct error e;

	(void)state;
	p = page_parse(body, strlen(body), &e);
	assert_non_null(p);
	assert_int_equal(p->count, 2);
	assert_int_equal(p->highest, INT64_C(9007199254740993));
	assert_string_equal(p->position, "p");
	assert_string_equal(p->next, "u");
	assert_int_equal(p->rows[0].record.event_id, INT64_C(9007199254740993));
	assert_false(p->rows[0].record.performed_by_id.has);
	assert_string_equal(p->rows[0].stamp, "2026-07-14T06:10:00.159000000Z");
	assert_string_equal(p->rows[0].record.lane, "poll");
	assert_int_equal(p->rows[0].record.details.len, 0);
	assert_int_equal(p->rows[1].record.performed_by_id.value, 4);
	assert_string_equal(p->rows[1].record.actor_type, "person");
	assert_string_equal(p->rows[1].record.lane, "poll");
	assert_int_equal(p->rows[1].record.details.len, strlen(details));
	assert_memory_equal(
	    p->rows[1].record.details.bytes, details, strlen(details));
	page_free(p);
}

static void
test_foul_pages(void **state)
{
	static const char *const t[] = {
	    "",
	    "[]",
	    "null",
	    "{\"events\":[]",
	    PAGE("", "") "x",
	    "{\"events\":[],\"position\":\"\"}",
	    "{\"events\":[],\"position\":null}",
	    "{\"events\":[]}",
	    "{\"events\":[],\"position\":7}",
	    "{\"events\":[],\"position\":\"a\xef\xbf\xbd\"}",
	    "{\"events\":[],\"position\":\"a\\ud800\"}",
	    "{\"events\":[],\"position\":\"a\\u0000b\"}",
	    "{\"events\":null,\"position\":\"p\"}",
	    "{\"events\":{},\"position\":\"p\"}",
	    "{\"position\":\"p\"}",
	    PAGE("", ",\"next\":7"),
	    PAGE("", ",\"next\":\"\\ufffd\""),
	    PAGE("", ",\"position\":\"q\""),
	    PAGE("", ",\"x\":{\"a\":1,\"a\":2}"),
	    PAGE("", ",\"\\ud800\":1"),
	    PAGE("", ",\"x\xff\":1"),
	    PAGE("7", ""),
	    PAGE(ROW("0"), ""),
	    PAGE(ROW("-1"), ""),
	    PAGE(ROW("1.0"), ""),
	    PAGE(ROW("\"1\""), ""),
	    PAGE(ROW("9223372036854775808"), ""),
	    PAGE(ROW_BUT("1", ",\"performed_by_id\":0"), ""),
	    PAGE(ROW_BUT("1", ",\"performed_by_id\":\"4\""), ""),
	    PAGE(ROW_BUT("1", ",\"id\":1"), ""),
	    PAGE("{\"id\":1}", ""),
	};
	static const char *const broken[] = {"\"kind\":\"\"", "\"kind\":7",
	    "\"action\":null", "\"event_type\":\"a\\ufffd\"", "\"bucket_id\":0",
	    "\"creator_id\":0", "\"recording_id\":null", "\"created_at\":\"\"",
	    "\"created_at\":\"yesterday\"",
	    "\"created_at\":\"1970-01-01T00:00:00Z\""};
	char body[1024], name[32];
	struct error e;
	const char *at, *end;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(t); i++) {
		print_message("%s\n", t[i]);
		assert_null(page_parse(t[i], strlen(t[i]), &e));
		assert_true(e.text[0] != '\0');
	}
	/* One member of a good row at a time in another form. */
	for (i = 0; i < COUNT(broken); i++) {
		(void)snprintf(name, sizeof(name), "%.*s",
		    (int)(strchr(broken[i], ':') - broken[i] + 1), broken[i]);
		at = strstr(PAGE(ROW("1"), ""), name);
		assert_non_null(at);
		end = strchr(at + strlen(name), ',');
		assert_non_null(end);
		(void)snprintf(body, sizeof(body), "%.*s%s%s",
		    (int)(at - PAGE(ROW("1"), "")), PAGE(ROW("1"), ""),
		    broken[i], end);
		print_message("%s\n", body);
		assert_null(page_parse(body, strlen(body), &e));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_digests),
	    cmocka_unit_test(test_foul_filters),
	    cmocka_unit_test(test_keys),
	    cmocka_unit_test(test_queries),
	    cmocka_unit_test(test_follow),
	    cmocka_unit_test(test_entries),
	    cmocka_unit_test(test_matrix),
	    cmocka_unit_test(test_page),
	    cmocka_unit_test(test_foul_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
