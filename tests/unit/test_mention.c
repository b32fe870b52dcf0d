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
 * The pieces that every text of three is made of: those of ledger.md 8.4, a
 * nesting the other way round, and three for the stray `=`.
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
    OPEN(AGENT_SGID) O CLOSE,
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

/* Whose mentions go; everybody else's stay. */
struct spans {
	struct mention at[SPANS_MAX];
	size_t end[SPANS_MAX];
	size_t count;
	int64_t person;
	const char *html;
	size_t len;
};

static bool
collect(const struct mention *m, void *arg)
{
	struct spans *s = arg;

	if (m->person != s->person)
		return true;
	assert_true(s->count < SPANS_MAX);
	s->end[s->count] = mention_end(s->html, s->len, m);
	s->at[s->count++] = *m;
	return true;
}

/*
 * Behind the tag, comment or instruction at TEXT, which is a `<`; a plain
 * reading for what these pieces hold: a quote counts behind its `=` only.
 * Where quotes are so torn that it finds no end, it has nothing to say.
 */
static const char *
behind_mark(const char *text)
{
	char quote = '\0';

	if (strncmp(text, "<!--", 4) == 0)
		return strstr(text + 1, "-->") + 3;
	for (text++; quote != '\0' || *text != '>'; text++) {
		if (*text == '\0')
			return text;
		if (quote != '\0')
			quote = *text == quote ? '\0' : quote;
		else if ((*text == '"' || *text == '\'') && text[-1] == '=')
			quote = *text;
	}
	return text + 1;
}

/* Tags that are open, innermost last. */
struct nest {
	char names[16][32];
	size_t depth;
};

/* One tag, its name without `<`; an end tag must close what is open here. */
static void
nest_tag(struct nest *n, const char *tag)
{
	bool is_end = *tag == '/';
	char name[32];

	(void)snprintf(name, sizeof(name), "%.*s",
	    (int)strcspn(tag + is_end, " />=<\"'"), tag + is_end);
	if (name[0] == '\0' || strchr("!?", name[0]) != NULL)
		return;
	assert_string_not_equal("bc-attachment", name);
	if (!is_end && strcmp(name, "img") != 0)
		(void)snprintf(n->names[n->depth++], 32, "%s", name);
	if (!is_end)
		return;
	while (n->depth > 0 && strcmp(n->names[n->depth - 1], name) != 0)
		n->depth--;
	assert_true(n->depth > 0);
	n->depth--;
}

/* What stands between a start tag and its end tag, read without the walk. */
static void
assert_closes_nothing_else(const char *inside, size_t len)
{
	char *copy = xstrndup(inside, len);
	const char *at = copy;
	struct nest nest = {.depth = 0};

	if (strstr(copy, "<p =") != NULL) /* it takes a > along */
		at += len;
	while ((at = strchr(at, '<')) != NULL) {
		nest_tag(&nest, at + 1);
		at = strcspn(at + 1, " \t\n\r\f/><=\"'") == 0 && at[1] != '/'
		    ? at + 1 /* a bare one is text */
		    : behind_mark(at);
	}
	free(copy);
}

/*
 * P4: the span is one element and nothing else. It opens with its start tag,
 * ends with it (always where that closes itself) or with its own end tag, and
 * closes nothing that it did not open.
 */
static void
assert_one_element(const struct spans *s, size_t i)
{
	static const char own_end[] = CLOSE;
	const char *span = s->html + s->at[i].start;
	size_t len = s->end[i] - s->at[i].start;
	size_t tag = s->at[i].tag_end - s->at[i].start;

	assert_true(len >= tag);
	assert_int_equal(0, strncasecmp(span, "<bc-attachment", 14));
	assert_int_equal('>', span[tag - 1]);
	if (span[tag - 2] == '/')
		assert_int_equal(tag, len);
	if (len != tag) {
		assert_true(len - tag >= sizeof(own_end) - 1);
		assert_int_equal(0,
		    strncasecmp(span + len - (sizeof(own_end) - 1), own_end,
			sizeof(own_end) - 1));
		assert_closes_nothing_else(
		    span + tag, len - tag - (sizeof(own_end) - 1));
	}
	if (i > 0)
		assert_true(s->end[i - 1] <= s->at[i].start);
}

/* P5: with any one span back in its place the reader finds the person. */
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
		assert_true(mention_has(b.bytes, b.len, s->person));
		b.len = 0;
	}
	buffer_free(&b);
}

/* P2: every other person is still found, in order. */
static void
assert_others_stay(const struct spans *s, const char *out, size_t out_len)
{
	int64_t before[8], after[8];
	size_t n, kept = 0, i;

	n = mention_find(s->html, s->len, before, COUNT(before));
	for (i = 0; i < n; i++)
		if (before[i] != s->person)
			before[kept++] = before[i];
	assert_int_equal(kept, mention_find(out, out_len, after, COUNT(after)));
	assert_memory_equal(before, after, kept * sizeof(after[0]));
}

/* How many spans went. */
static size_t
assert_properties(const char *html, size_t len, int64_t person)
{
	struct spans s = {.person = person, .html = html, .len = len};
	enum mention_stripped how;
	char *out;
	size_t out_len, i;

	how = mention_strip(html, len, person, &out, &out_len);
	mention_walk(html, len, collect, &s);
	assert_false(mention_has(out, out_len, person)); /* P1 */
	assert_others_stay(&s, out, out_len);            /* P2 */
	if (s.count == 0) {                              /* P3 */
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
	return s.count;
}

/* For the agent, for another person, and for one who is nowhere. */
static void
reader_and_stripper_agree_on_all_triples(void **state)
{
	static const int64_t persons[] = {AGENT, OTHER, 7};
	size_t i, j, k, p, spans[COUNT(persons)] = {0};
	struct buffer b = {0};

	for (i = 0; i < COUNT(pieces); i++)
		for (j = 0; j < COUNT(pieces); j++)
			for (k = 0; k < COUNT(pieces); k++) {
				b.len = 0;
				buffer_add_text(&b, pieces[i]);
				buffer_add_text(&b, pieces[j]);
				buffer_add_text(&b, pieces[k]);
				for (p = 0; p < COUNT(persons); p++)
					spans[p] += assert_properties(
					    b.bytes, b.len, persons[p]);
			}
	buffer_free(&b);
	printf("%zu triples; %zu mentions of the agent went, %zu of another\n",
	    COUNT(pieces) * COUNT(pieces) * COUNT(pieces), spans[0], spans[1]);
	assert_true(spans[0] > 10000 && spans[1] > 5000 && spans[2] == 0);
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
