/* The walk over rich text: what is a mention, what of it goes, and that
 * reader and stripper agree on every text made of hostile pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "common/buffer.h"
#include "common/mention.h"
#include "common/xmalloc.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define AGENT 52007412
#define OTHER 1049715915

#define AGENT_SGID                                                             \
	"eyJfcmFpbHMiOnsiZGF0YSI6ImdpZDovL2JjMy9QZXJzb24vNTIwMDc0MTIiLCJwdXIi" \
	"OiJhdHRhY2hhYmxlIn19"
#define OTHER_SGID                                                             \
	"BAh7CEkiCGdpZAY6BkVUSSIrZ2lkOi8vYmMzL1BlcnNvbi8xMDQ5NzE1OTE1P2V4cGly" \
	"ZXNfaW4GOwBUSSIMcHVycG9zZQY7AFRJIg9hdHRhY2hhYmxlBjsAVEkiD2V4cGlyZXNf" \
	"YXQGOwBUMA==--aeb392"
#define BLOB_SGID                                                              \
	"BAh7BkkiC19yYWlscwY6BkVUewdJIglkYXRhBjsAVEkiK2dpZDovL2JjMy9BY3RpdmVT" \
	"dG9yYWdlOjpCbG9iLzUyMDA3NDEyBjsAVEkiCHB1cgY7AFRJIg9hdHRhY2hhYmxlBjsA" \
	"VA=="
/* The first letter as an entity. */
#define AGENT_ENTITY                                                           \
	"&#x65;yJfcmFpbHMiOnsiZGF0YSI6ImdpZDovL2JjMy9QZXJzb24vNTIwMDc0MTIiLCJ" \
	"wdXIiOiJhdHRhY2hhYmxlIn19"

#define OPEN(sgid) "<bc-attachment sgid=\"" sgid "\">"
#define CLOSE "</bc-attachment>"
#define M OPEN(AGENT_SGID) CLOSE
#define O OPEN(OTHER_SGID) CLOSE

static bool
has_agent(const char *html)
{
	char *copy = xmemdup(html, strlen(html));
	bool has = mention_has(copy, strlen(html), AGENT);

	free(copy);
	return has;
}

static void
what_counts_as_a_mention(void **state)
{
	static const struct {
		const char *html;
		bool want;
	} rows[] = {
	    {M, true},
	    {OPEN(AGENT_SGID), true},
	    {"<bc-attachment sgid='" AGENT_SGID "'/>", true},
	    {"<bc-attachment sgid=" AGENT_SGID ">", true},
	    {"<bc-attachment sgid=" AGENT_SGID "== >", true},
	    {"<BC-Attachment\tSGID\n=\r\f\"" AGENT_SGID "\"\n>", true},
	    {"<bc-attachment/sgid=\"" AGENT_SGID "\">", true},
	    {"<bc-attachment sgid=\" " AGENT_SGID "\n\">", true},
	    {"<bc-attachment sgid=\"" AGENT_ENTITY "\">", true},
	    {"<bc-attachment content-type=\"image/png\" sgid=\"" AGENT_SGID
	     "\">",
		true},
	    {"<blockquote><pre><code>" M "</code></pre></blockquote>", true},
	    {"<script>" M "</script>", true},
	    {"<bc-attachment title=\"a>b\" sgid=\"" AGENT_SGID "\">", true},
	    {"<bc-attachment disabled sgid=\"" AGENT_SGID "\">", true},
	    {"<" M, true},
	    {"< " M, true},
	    {"a < b " M, true},
	    {"<!-->" M, true},
	    {"<!--->" M, true},
	    {"<!-- x -->" M, true},
	    {"<!DOCTYPE html>" M, true},
	    {"<?xml a=\">" M, true},
	    {"</div a=\">" M, true},
	    {"<>" M, true},
	    {"</>" M, true},
	    {"\xff\xfe" M, true},
	    {"@Agent", false},
	    {"", false},
	    {"<", false},
	    {"<bc-attachment>", false},
	    {O, false},
	    {OPEN(BLOB_SGID), false},
	    {OPEN(""), false},
	    {OPEN("garbage"), false},
	    {"<bc-attachment sgid=\"\" sgid=\"" AGENT_SGID "\">", false},
	    {"<bc-attachment sgid sgid=\"" AGENT_SGID "\">", false},
	    {"<bc-attachment sgid= sgid=\"" AGENT_SGID "\">", false},
	    {"<bc-attachment data.sgid=\"" AGENT_SGID "\">", false},
	    {"<bc-attachment \"sgid=\"" AGENT_SGID "\">", false},
	    {"<bc-attachment.x sgid=\"" AGENT_SGID "\">", false},
	    {"<bc-attachment:p sgid=\"" AGENT_SGID "\">", false},
	    {"<bc-attachment_x sgid=\"" AGENT_SGID "\">", false},
	    {"<xbc-attachment sgid=\"" AGENT_SGID "\">", false},
	    {"< bc-attachment sgid=\"" AGENT_SGID "\">", false},
	    {"</bc-attachment sgid=\"" AGENT_SGID "\">", false},
	    {"<bc-attachment sgid=\"" AGENT_SGID, false},
	    {"<bc-attachment sgid=\"" AGENT_SGID "\"", false},
	    {"<bc-attachment sgid=\"" AGENT_SGID ">", false},
	    {"<!-- " M " -->", false},
	    {"<!-- " M, false},
	    {"<!-- > " M " -->", false},
	    {"<!-- > " M, false},
	    {"<p title='" M "'>", false},
	    {"<p title=\"" M, false},
	    {"<! " M, false}, /* ends at the mention's own > */
	    {"<b" M, false},
	    {"<p a='>" M, false},
	    {"&lt;bc-attachment sgid=\"" AGENT_SGID "\">", false},
	};
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		if (has_agent(rows[i].html) != rows[i].want)
			fail_msg("%s", rows[i].html);
}

/* A name is empty only where an `=` has none: one byte more goes with it. */
static void
a_stray_equals_sign_takes_one_byte_more(void **state)
{
	static const struct {
		const char *html;
		bool want;
	} rows[] = {
	    {"<bc-attachment =x sgid=\"" AGENT_SGID "\">", true},
	    {"<bc-attachment =\"x\" sgid=\"" AGENT_SGID "\">", true},
	    {"<bc-attachment =\"x\"sgid=\"" AGENT_SGID "\">", false},
	    {"<bc-attachment = sgid=\"" AGENT_SGID "\">", false},
	    {"<p =x>" M, false}, /* the > is gone: the tag goes on */
	    {"<p =x>>" M, true},
	    {"<p =\"x\">" M, false},
	    {"<p =\"x\" >" M, true},
	    {"<bc-attachment =x> sgid=\"" AGENT_SGID "\">", true},
	    {"<p =", false},
	    {"<p =\"", false},
	};
	char *out;
	size_t i, len;

	for (i = 0; i < COUNT(rows); i++) {
		if (has_agent(rows[i].html) != rows[i].want)
			fail_msg("%s", rows[i].html);
		assert_int_equal(
		    rows[i].want ? MENTION_STRIPPED : MENTION_UNCHANGED,
		    mention_strip(
			rows[i].html, strlen(rows[i].html), AGENT, &out, &len));
		assert_false(mention_has(out, len, AGENT));
		free(out);
	}
}

static void
persons_are_found_in_order_and_once(void **state)
{
	static const char html[] = "<p>" O M "x" OPEN(BLOB_SGID) O M "</p>";
	int64_t ids[4] = {0};

	assert_int_equal(2, mention_find(html, strlen(html), ids, 4));
	assert_int_equal(OTHER, ids[0]);
	assert_int_equal(AGENT, ids[1]);
	assert_int_equal(0, ids[2]);
	assert_int_equal(1, mention_find(html, strlen(html), ids, 1));
	assert_int_equal(0, mention_find(html, strlen(html), ids, 0));
	assert_int_equal(0, mention_find("", 0, ids, 4));
	assert_false(mention_has(html, strlen(html), 7));
}

static void
the_element_goes_and_a_space_stays(void **state)
{
#define TAIL " text</p><p>more</p></bc-attachment> tail"
	static const struct {
		const char *html, *want;
	} rows[] = {
	    {"<div>" M " do it</div>", "<div>  do it</div>"},
	    {"a" M "b", "a b"},
	    {"<" M "hi", "< hi"},
	    {M, " "},
	    {M M, "  "},
	    {M O M, " " O " "},
	    {"plain", "plain"},
	    {"<bc-attachment sgid=\"" AGENT_SGID "\"/>" TAIL, " " TAIL},
	    {"<p>" OPEN(AGENT_SGID) TAIL, "<p> " TAIL},
	    {OPEN(AGENT_SGID) "<figure><img src=x><figcaption>Agent"
			      "</figcaption></figure>" CLOSE "!",
		" !"},
	    {OPEN(AGENT_SGID) "<b><i>x</b>y" CLOSE "!", " !"},
	    {OPEN(AGENT_SGID) "<br><hr>x<P>y</p>" CLOSE "!", " !"},
	    {OPEN(AGENT_SGID) "<!-- " CLOSE " -->x" CLOSE "!", " !"},
	    {OPEN(AGENT_SGID) "<b title=\"" CLOSE "\">x" CLOSE "!", " !"},
	    {OPEN(AGENT_SGID) "<br>x</br>" CLOSE "!", " <br>x</br>" CLOSE "!"},
	    {OPEN(AGENT_SGID) "x" OPEN(OTHER_SGID) "y" CLOSE "z" CLOSE,
		" x" OPEN(OTHER_SGID) "y" CLOSE "z" CLOSE},
	    {OPEN(AGENT_SGID) "x" OPEN(BLOB_SGID) "y" CLOSE,
		" x" OPEN(BLOB_SGID) "y" CLOSE},
	    {OPEN(AGENT_SGID) "x" OPEN(AGENT_SGID) "y" CLOSE, " x "},
	    {OPEN(AGENT_SGID) "x</bc-attachment junk=\">!", " !"},
	    {OPEN(AGENT_SGID) "x</BC-ATTACHMENT>!", " !"},
	    {OPEN(AGENT_SGID) "x</bc-attachment", " x</bc-attachment"},
	    {OPEN(AGENT_SGID) "x<p", " x<p"},
	    {OPEN(AGENT_SGID) "x<!-- " CLOSE, " x<!-- " CLOSE},
	    {"<bc-attachment sgid='" AGENT_SGID "' / >x" CLOSE, " "},
	};
	enum mention_stripped how;
	char *out;
	size_t i, len;

	for (i = 0; i < COUNT(rows); i++) {
		how = mention_strip(
		    rows[i].html, strlen(rows[i].html), AGENT, &out, &len);
		assert_string_equal(rows[i].want, out);
		assert_int_equal(strlen(rows[i].want), len);
		assert_int_equal(strcmp(rows[i].html, rows[i].want) == 0
			? MENTION_UNCHANGED
			: MENTION_STRIPPED,
		    how);
		free(out);
	}
}

static void
nul_bytes_pass_through(void **state)
{
	static const char html[] = "a\0<p\0>" M "\0b";
	char *out;
	size_t len;

	assert_int_equal(MENTION_STRIPPED,
	    mention_strip(html, sizeof(html) - 1, AGENT, &out, &len));
	assert_int_equal(9, len);
	assert_memory_equal("a\0<p\0> \0b", out, 9);
	free(out);
}

/*
 * The pieces that every text of three is made of.
 */
static const char *const pieces[] = {
    M,
    O,
    "plain text",
    OPEN(BLOB_SGID) "file" CLOSE,
    "<bc-attachment sgid='" AGENT_SGID "'>x" CLOSE,
    "<bc-attachment sgid=" AGENT_SGID "></bc-attachment>",
    "<BC-ATTACHMENT SGID=\"" AGENT_SGID "\"></BC-ATTACHMENT>",
    OPEN(AGENT_ENTITY) CLOSE,
    "<bc-attachment sgid=\"\" sgid=\"" AGENT_SGID "\">" CLOSE,
    "<bc-attachment data.sgid=\"" AGENT_SGID "\">" CLOSE,
    "<bc-attachment.x sgid=\"" AGENT_SGID "\"></bc-attachment.x>",
    "<bc-attachment alt=\"a > b\" sgid=\"" AGENT_SGID "\">" CLOSE,
    "<p title='" M "'>",
    "<bc-attachment sgid=\"" AGENT_SGID "\"/>",
    OPEN(AGENT_SGID),
    CLOSE,
    "<!-- " M " -->",
    "<!-->",
    "<!--",
    "<?php echo '>' ?>",
    "<!DOCTYPE html>",
    OPEN(AGENT_SGID) "<figure><img><figcaption>A</figcaption></figure>" CLOSE,
    "< bc-attachment",
    "a < b",
    OPEN(OTHER_SGID) M CLOSE,
    "<bc-attachment sgid=\"" AGENT_SGID,
    "\"",
    "<div title=\"open",
    "<",
    "<p ",
    ">",
    "/",
    "<b",
    "bc-attachment sgid=\"" AGENT_SGID "\">",
    "</p>",
    "=",
    "<p =x>",
};

#define SPANS_MAX 16

struct spans {
	struct mention at[SPANS_MAX];
	size_t end[SPANS_MAX];
	size_t count;
	const char *html;
	size_t len;
};

static bool
collect(const struct mention *m, void *arg)
{
	struct spans *s = arg;

	if (m->person != AGENT)
		return true;
	assert_true(s->count < SPANS_MAX);
	s->end[s->count] = mention_end(s->html, s->len, m);
	s->at[s->count++] = *m;
	return true;
}

/* P4: alone, the span is one element and nothing else. */
static void
assert_one_element(const struct spans *s, size_t i)
{
	const char *span = s->html + s->at[i].start;
	size_t len = s->end[i] - s->at[i].start;
	struct mention alone = {AGENT, 0, s->at[i].tag_end - s->at[i].start};

	assert_true(len >= alone.tag_end);
	assert_int_equal(0, strncasecmp(span, "<bc-attachment", 14));
	assert_int_equal('>', span[len - 1]);
	assert_int_equal(len, mention_end(span, len, &alone));
	if (span[alone.tag_end - 2] == '/')
		assert_int_equal(alone.tag_end, len);
	if (i > 0)
		assert_true(s->end[i - 1] <= s->at[i].start);
}

/* P5: with any one span back in its place the reader finds the agent. */
static void
assert_each_span_matters(const struct spans *s)
{
	struct buffer b = {0};
	size_t kept, i, from;

	for (kept = 0; kept < s->count; kept++) {
		for (i = from = 0; i < s->count; i++) {
			buffer_add(&b, s->html + from, s->at[i].start - from);
			from = s->end[i];
			if (i == kept)
				buffer_add(&b, s->html + s->at[i].start,
				    from - s->at[i].start);
			else
				buffer_add_char(&b, ' ');
		}
		buffer_add(&b, s->html + from, s->len - from);
		assert_true(mention_has(b.bytes, b.len, AGENT));
		b.len = 0;
	}
	buffer_free(&b);
}

/* P2: every other person is still found, in order. */
static void
assert_others_stay(
    const char *html, size_t len, const char *out, size_t out_len)
{
	int64_t before[8], after[8];
	size_t n, kept = 0, i;

	n = mention_find(html, len, before, COUNT(before));
	for (i = 0; i < n; i++)
		if (before[i] != AGENT)
			before[kept++] = before[i];
	assert_int_equal(kept, mention_find(out, out_len, after, COUNT(after)));
	assert_memory_equal(before, after, kept * sizeof(after[0]));
}

static void
assert_properties(const char *html, size_t len)
{
	struct spans s = {.html = html, .len = len};
	enum mention_stripped how;
	char *out;
	size_t out_len, i;

	how = mention_strip(html, len, AGENT, &out, &out_len);
	mention_walk(html, len, collect, &s);
	assert_false(mention_has(out, out_len, AGENT)); /* P1 */
	assert_others_stay(html, len, out, out_len);    /* P2 */
	if (s.count == 0) {                             /* P3 */
		assert_int_equal(MENTION_UNCHANGED, how);
		assert_int_equal(len, out_len);
		assert_memory_equal(html, out, len);
	} else { /* P6 */
		assert_int_equal(MENTION_STRIPPED, how);
	}
	for (i = 0; i < s.count; i++)
		assert_one_element(&s, i);
	assert_each_span_matters(&s);
	free(out);
}

static void
reader_and_stripper_agree_on_all_triples(void **state)
{
	struct buffer b = {0};
	size_t i, j, k;

	for (i = 0; i < COUNT(pieces); i++)
		for (j = 0; j < COUNT(pieces); j++)
			for (k = 0; k < COUNT(pieces); k++) {
				b.len = 0;
				buffer_add_text(&b, pieces[i]);
				buffer_add_text(&b, pieces[j]);
				buffer_add_text(&b, pieces[k]);
				assert_properties(b.bytes, b.len);
			}
	buffer_free(&b);
}

/* Time linear in the text: a quadratic walk would take minutes here. */
static void
long_hostile_texts_end_soon(void **state)
{
	static const char *const units[] = {"<", "<a", "<a ", "</", "<!--",
	    "<a b=\"", "<bc-attachment ", OPEN(AGENT_SGID), "<b></i>",
	    OPEN(BLOB_SGID) "<b>", "=", "<p ="};
	struct buffer b = {0};
	char *out;
	size_t i, len;

	for (i = 0; i < COUNT(units); i++) {
		b.len = 0;
		buffer_add_text(&b, OPEN(AGENT_SGID));
		while (b.len < 1000000)
			buffer_add_text(&b, units[i]);
		(void)mention_strip(b.bytes, b.len, AGENT, &out, &len);
		assert_false(mention_has(out, len, AGENT));
		free(out);
	}
	buffer_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_counts_as_a_mention),
	    cmocka_unit_test(a_stray_equals_sign_takes_one_byte_more),
	    cmocka_unit_test(persons_are_found_in_order_and_once),
	    cmocka_unit_test(the_element_goes_and_a_space_stays),
	    cmocka_unit_test(nul_bytes_pass_through),
	    cmocka_unit_test(reader_and_stripper_agree_on_all_triples),
	    cmocka_unit_test(long_hostile_texts_end_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
