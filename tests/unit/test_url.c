/* Origins, continuations, queries, links, prompt URLs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/url.h"
#include "common/xmalloc.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TEXT(s) (s), sizeof(s) - 1

static void
assert_part(const struct url_part *part, const char *want)
{
	if (want == NULL) {
		assert_false(part->present);
		assert_int_equal(0, part->len);
		return;
	}
	assert_true(part->present);
	assert_int_equal(strlen(want), part->len);
	assert_memory_equal(want, part->bytes, part->len);
}

static void
urls_are_taken_apart(void **state)
{
	static const struct {
		const char *url, *scheme, *userinfo, *host, *port, *path,
		    *query, *fragment;
	} rows[] = {
	    {"https://x", "https", NULL, "x", NULL, "", NULL, NULL},
	    {"HTTP://X.y:80/", "HTTP", NULL, "X.y", "80", "/", NULL, NULL},
	    {"a+-.1://h:/p?q#f", "a+-.1", NULL, "h", "", "/p", "q", "f"},
	    {"https://h?#", "https", NULL, "h", NULL, "", "", ""},
	    {"https://h#a?b/c", "https", NULL, "h", NULL, "", NULL, "a?b/c"},
	    {"https://h?a/b?c", "https", NULL, "h", NULL, "", "a/b?c", NULL},
	    {"https://u:p@v@h/", "https", "u:p@v", "h", NULL, "/", NULL, NULL},
	    {"https://@h/@", "https", "", "h", NULL, "/@", NULL, NULL},
	    {"https://[::1]:3/x:y", "https", NULL, "[::1]", "3", "/x:y", NULL,
		NULL},
	    {"https://[fe80::1]", "https", NULL, "[fe80::1]", NULL, "", NULL,
		NULL},
	    {"https://b\xc3\xbc"
	     "cher/\xc3\xa9%C3",
		"https", NULL,
		"b\xc3\xbc"
		"cher",
		NULL, "/\xc3\xa9%C3", NULL, NULL},
	    {"https://h//a//", "https", NULL, "h", NULL, "//a//", NULL, NULL},
	};
	struct error e;
	struct url u;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		char *copy = xmemdup(rows[i].url, strlen(rows[i].url));

		assert_int_equal(
		    0, url_parse(copy, strlen(rows[i].url), &u, &e));
		assert_part(&u.scheme, rows[i].scheme);
		assert_part(&u.userinfo, rows[i].userinfo);
		assert_part(&u.host, rows[i].host);
		assert_part(&u.port, rows[i].port);
		assert_part(&u.path, rows[i].path);
		assert_part(&u.query, rows[i].query);
		assert_part(&u.fragment, rows[i].fragment);
		free(copy);
	}
}

static const struct {
	const char *text;
	size_t len;
} no_urls[] = {
    {TEXT("")},
    {TEXT("x")},
    {TEXT("//h/p")},
    {TEXT("/p")},
    {TEXT("?q")},
    {TEXT(":")},
    {TEXT("://h")},
    {TEXT("https:")},
    {TEXT("https:h")},
    {TEXT("https:/h")},
    {TEXT("https://")},
    {TEXT("https:///p")},
    {TEXT("https://?q")},
    {TEXT("https://#f")},
    {TEXT("https://:80")},
    {TEXT("https://u@")},
    {TEXT("https://u@:80/")},
    {TEXT("1https://h")},
    {TEXT("ht tps://h")},
    {TEXT(" https://h")},
    {TEXT("https://h ")},
    {TEXT("https://h/a b")},
    {TEXT("https://h/\t")},
    {TEXT("https://h/\n")},
    {TEXT("https://h/\0")},
    {TEXT("https://h\0/")},
    {TEXT("https://h/\x7f")},
    {TEXT("https://h/\xc2\x85")},
    {TEXT("https://h/\xc2\xa0")},
    {TEXT("https://h/\xe2\x80\xa8")},
    {TEXT("https://h/\xff")},
    {TEXT("https://h/%")},
    {TEXT("https://h/%4")},
    {TEXT("https://h/%4g")},
    {TEXT("https://h/#%4g")},
    {TEXT("https://%68/")},
    {TEXT("https://u%@h/")},
    {TEXT("https://h:x/")},
    {TEXT("https://h:-1/")},
    {TEXT("https://h:65536/")},
    {TEXT("https://h:99999999999999999999/")},
    {TEXT("https://h:1:2/")},
    {TEXT("https://a\\b/")},
    {TEXT("https://a,b/")},
    {TEXT("https://[::1/")},
    {TEXT("https://::1/")},
    {TEXT("https://[]/")},
    {TEXT("https://[x]/")},
    {TEXT("https://[::1]x/")},
    {TEXT("https://[::1%25eth0]/")},
    {TEXT("https://[::1]]/")},
    {TEXT("https://[1::2::3]/")},
    {TEXT("https://h]/")},
};

static void
what_is_no_url_is_refused(void **state)
{
	struct error e;
	struct url u;
	char *copy;
	size_t i;

	for (i = 0; i < COUNT(no_urls); i++) {
		copy = xmemdup(no_urls[i].text, no_urls[i].len);
		e.text[0] = '\0';
		if (url_parse(copy, no_urls[i].len, &u, &e) == 0)
			fail_msg("passed: %s", no_urls[i].text);
		assert_true(e.text[0] != '\0');
		assert_int_equal(-1, url_parse(copy, no_urls[i].len, &u, NULL));
		assert_false(url_is_link(copy, no_urls[i].len));
		assert_false(url_is_plain(copy, no_urls[i].len));
		free(copy);
	}
}

static void
origins_are_canonical(void **state)
{
	static const struct {
		const char *url, *want;
	} rows[] = {
	    {"https://3.basecampapi.com", "https://3.basecampapi.com"},
	    {"HTTPS://3.BasecampAPI.com:443/x?y#z",
		"https://3.basecampapi.com"},
	    {"https://h:0443", "https://h"},
	    {"https://h:", "https://h"},
	    {"https://h:80", "https://h:80"},
	    {"http://h:80/", "http://h"},
	    {"http://h:443", "http://h:443"},
	    {"https://[FE80::1]:8443/", "https://[fe80::1]:8443"},
	    {"http://127.0.0.1:3000", "http://127.0.0.1:3000"},
	    {"https://h:0", "https://h:0"},
	    {"https://u@h", NULL},
	    {"https://@h", NULL},
	    {"ftp://h", NULL},
	    {"wss://h", NULL},
	    {"h", NULL},
	};
	struct error e;
	char *origin;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		origin = NULL;
		assert_int_equal(rows[i].want == NULL ? -1 : 0,
		    url_origin(rows[i].url, strlen(rows[i].url), &origin, &e));
		if (rows[i].want != NULL)
			assert_string_equal(rows[i].want, origin);
		free(origin);
	}
}

static void
bases_are_https_or_this_machine(void **state)
{
	static const char *const good[] = {"https://h", "https://h:8/",
	    "http://localhost", "http://LocalHost:80/", "http://127.0.0.1:1",
	    "http://[::1]:1", "http://a.localhost", "http://a.b.LOCALHOST"};
	static const char *const bad[] = {"http://h", "http://127.0.0.2",
	    "http://xlocalhost", "http://.localhost.x", "http://localhost.x",
	    "http://[::2]", "http://0", "ftp://localhost", "https://u@h",
	    "https://h/p", "https://h/?", "https://h#", "https://h//", ""};
	struct error e;
	size_t i;

	for (i = 0; i < COUNT(good); i++)
		if (url_check_base(good[i], strlen(good[i]), &e) == -1)
			fail_msg("%s: %s", good[i], e.text);
	for (i = 0; i < COUNT(bad); i++)
		if (url_check_base(bad[i], strlen(bad[i]), &e) == 0)
			fail_msg("%s passed", bad[i]);
	/* A name that is nothing but the suffix is nobody's. */
	assert_int_equal(-1, url_check_base(TEXT("http://.localhost"), &e));
}

static void
continuations_stay_at_their_origin(void **state)
{
	static const char origin[] = "https://h:8";
	static const char *const good[] = {"https://h:8",
	    "HTTPS://H:8/1/events.json?position=x", "https://h:08/"};
	static const char *const bad[] = {"http://h:8/", "https://h/",
	    "https://h:80/", "https://u@h:8/", "https://h.x:8/", "/x?y",
	    "//h:8/", "https://h:8\xff/", "https://h:8@x/", ""};
	struct error e;
	size_t i;

	for (i = 0; i < COUNT(good); i++)
		assert_int_equal(0,
		    url_check_continuation(
			good[i], strlen(good[i]), origin, &e));
	for (i = 0; i < COUNT(bad); i++) {
		if (url_check_continuation(
			bad[i], strlen(bad[i]), origin, &e) == 0)
			fail_msg("%s passed", bad[i]);
		assert_string_equal(
		    "a continuation that cannot be followed", e.text);
	}
}

static void
queries_are_taken_apart(void **state)
{
	static const char text[] =
	    "position=a%2Bb%3d&&types=a%2Cb+c&position=2&empty=&bare&"
	    "=x&n%75l=%00z&\xc3\xa9=%C3%A9&a=b=c&";
	struct error e;
	struct url_query q;
	char *copy = xmemdup(text, strlen(text));

	assert_int_equal(0, url_query_parse(copy, strlen(text), &q, &e));
	assert_int_equal(9, q.count);
	assert_string_equal("a+b=", url_query_get(&q, "position"));
	assert_int_equal(2, url_query_count(&q, "position"));
	assert_string_equal("2", q.pairs[2].value);
	assert_string_equal("a,b c", url_query_get(&q, "types"));
	assert_string_equal("", url_query_get(&q, "empty"));
	assert_string_equal("", url_query_get(&q, "bare"));
	assert_string_equal("x", url_query_get(&q, ""));
	assert_int_equal(2, q.pairs[6].value_len);
	assert_memory_equal("\0z", q.pairs[6].value, 3);
	assert_int_equal(1, url_query_count(&q, "nul"));
	assert_string_equal("\xc3\xa9", url_query_get(&q, "\xc3\xa9"));
	assert_string_equal("b=c", url_query_get(&q, "a"));
	assert_null(url_query_get(&q, "b"));
	assert_int_equal(0, url_query_count(&q, "posi"));
	url_query_free(&q);
	free(copy);
	assert_int_equal(0, url_query_parse("", 0, &q, &e));
	assert_int_equal(0, q.count);
	url_query_free(&q);
}

/* A pair that does not parse is an error: dropped, it would jump the feed. */
static void
malformed_pairs_are_errors(void **state)
{
	static const char *const rows[] = {"a=%", "a=%4", "a=%4g", "a=%g4",
	    "%=a", "a=1&b=%zz", "a=1;b=2", ";", "a=1&;", "a=%4%41"};
	struct error e;
	struct url_query q;
	struct buffer b = {0};
	char *copy;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		copy = xmemdup(rows[i], strlen(rows[i]));
		if (url_query_parse(copy, strlen(rows[i]), &q, &e) == 0)
			fail_msg("%s passed", rows[i]);
		free(copy);
	}
	for (i = 0; i < URL_PAIRS_MAX; i++)
		buffer_add_text(&b, "a&");
	assert_int_equal(0, url_query_parse(b.bytes, b.len, &q, &e));
	assert_int_equal(URL_PAIRS_MAX, q.count);
	url_query_free(&q);
	buffer_add_text(&b, "a");
	assert_int_equal(-1, url_query_parse(b.bytes, b.len, &q, &e));
	assert_string_equal("a query of more than 256 pairs", e.text);
	buffer_free(&b);
}

static void
escaping_comes_back(void **state)
{
	struct buffer b = {0};
	struct url_query q;
	struct error e;
	char all[256];
	size_t i;

	url_escape(&b, TEXT("aZ09.-_~"));
	assert_string_equal("aZ09.-_~", b.bytes);
	url_escape(&b, TEXT(" +,/%\xc3\xa9\0"));
	assert_string_equal("aZ09.-_~%20%2B%2C%2F%25%C3%A9%00", b.bytes);
	b.len = 0;
	for (i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	buffer_add_text(&b, "x=");
	url_escape(&b, all, sizeof(all));
	assert_int_equal(0, url_query_parse(b.bytes, b.len, &q, &e));
	assert_int_equal(sizeof(all), q.pairs[0].value_len);
	assert_memory_equal(all, q.pairs[0].value, sizeof(all));
	url_query_free(&q);
	buffer_free(&b);
}

static void
links_and_plain_urls(void **state)
{
	static const struct {
		const char *url;
		bool is_link, is_plain;
	} rows[] = {
	    {"https://3.basecamp.com/999/buckets/1/messages/2#__recording_3",
		true, false},
	    {"https://3.basecamp.com/999/buckets/1/messages/2", true, true},
	    {"https://h", true, true},
	    {"https://h:8443/A_b-c", true, true},
	    {"HTTPS://h/", true, false},
	    {"Http://h/", true, false},
	    {"http://h/", true, false},
	    {"https://h/a.b", true, false},
	    {"https://h/%41", true, false},
	    {"https://h/a~b", true, false},
	    {"https://h/a:b", true, false},
	    {"https://h/?", true, false},
	    {"https://h/?a", true, false},
	    {"https://h/#", true, false},
	    {"https://u@h/", true, false},
	    {"https://@h/", true, false},
	    {"https://[::1]/", true, false},
	    {"https://h~/", true, false},
	    {"https://b\xc3\xbc"
	     "cher/",
		true, false},
	    {"https://h/\xc3\xa9", true, false},
	    {"https://h/(a)", true, false},
	    {"ftp://h/", false, false},
	    {"javascript://h/", false, false},
	    {"mailto:a@b", false, false},
	    {"h/", false, false},
	};
	char text[URL_PLAIN_MAX + 2];
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		if (url_is_link(rows[i].url, strlen(rows[i].url)) !=
			rows[i].is_link ||
		    url_is_plain(rows[i].url, strlen(rows[i].url)) !=
			rows[i].is_plain)
			fail_msg("%s", rows[i].url);
	}
	memset(text, 'a', sizeof(text));
	memcpy(text, "https://h/", 10);
	assert_true(url_is_plain(text, URL_PLAIN_MAX));
	assert_false(url_is_plain(text, URL_PLAIN_MAX + 1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(urls_are_taken_apart),
	    cmocka_unit_test(what_is_no_url_is_refused),
	    cmocka_unit_test(origins_are_canonical),
	    cmocka_unit_test(bases_are_https_or_this_machine),
	    cmocka_unit_test(continuations_stay_at_their_origin),
	    cmocka_unit_test(queries_are_taken_apart),
	    cmocka_unit_test(malformed_pairs_are_errors),
	    cmocka_unit_test(escaping_comes_back),
	    cmocka_unit_test(links_and_plain_urls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
