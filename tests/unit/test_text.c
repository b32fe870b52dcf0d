/* UTF-8, the words of a message, entities, single lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buffer.h"
#include "common/text.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TEXT(s) (s), sizeof(s) - 1
#define FFFD UTF8_REPLACEMENT_TEXT

struct row {
	const char *text;
	size_t len;
	const char *want;
};

typedef char *(*maker)(const char *, size_t, size_t *);

/* MAKE each row from an exact copy; the result is UTF-8 without NUL. */
static void
assert_rows(maker make, const struct row *rows, size_t count)
{
	char *copy, *got;
	size_t i, len;

	for (i = 0; i < count; i++) {
		copy = xmemdup(rows[i].text, rows[i].len);
		got = make(copy, rows[i].len, &len);
		assert_string_equal(rows[i].want, got);
		assert_int_equal(strlen(got), len);
		assert_true(utf8_is_valid(got, len));
		free(got);
		got = make(copy, rows[i].len, NULL);
		assert_string_equal(rows[i].want, got);
		free(got);
		free(copy);
	}
}

static void
utf8_characters(void **state)
{
	static const struct {
		const char *text;
		size_t len, want;
		uint32_t cp;
	} rows[] = {
	    {TEXT("a"), 1, 'a'},
	    {TEXT("\0"), 1, 0},
	    {TEXT("\x7f"), 1, 0x7f},
	    {TEXT("\xc2\x80"), 2, 0x80},
	    {TEXT("\xdf\xbf"), 2, 0x7ff},
	    {TEXT("\xe0\xa0\x80"), 3, 0x800},
	    {TEXT("\xed\x9f\xbf"), 3, 0xd7ff},
	    {TEXT("\xee\x80\x80"), 3, 0xe000},
	    {TEXT("\xef\xbf\xbf"), 3, 0xffff},
	    {TEXT("\xf0\x90\x80\x80"), 4, 0x10000},
	    {TEXT("\xf4\x8f\xbf\xbf"), 4, 0x10ffff},
	    {TEXT(""), 0, 0},
	    {TEXT("\x80"), 0, 0},
	    {TEXT("\xbf"), 0, 0},
	    {TEXT("\xc0\x80"), 0, 0},
	    {TEXT("\xc1\xbf"), 0, 0},
	    {TEXT("\xc2"), 0, 0},
	    {TEXT("\xc2\x41"), 0, 0},
	    {TEXT("\xc2\xc2"), 0, 0},
	    {TEXT("\xe0\x9f\xbf"), 0, 0},
	    {TEXT("\xe2\x82"), 0, 0},
	    {TEXT("\xe2\x41\x80"), 0, 0},
	    {TEXT("\xed\xa0\x80"), 0, 0},
	    {TEXT("\xed\xbf\xbf"), 0, 0},
	    {TEXT("\xf0\x8f\xbf\xbf"), 0, 0},
	    {TEXT("\xf0\x9f\x98"), 0, 0},
	    {TEXT("\xf4\x90\x80\x80"), 0, 0},
	    {TEXT("\xf5\x80\x80\x80"), 0, 0},
	    {TEXT("\xf8\x88\x80\x80\x80"), 0, 0},
	    {TEXT("\xff"), 0, 0},
	};
	char utf8[4], *copy;
	uint32_t cp;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		copy = xmemdup(rows[i].text, rows[i].len);
		cp = 0xdead;
		assert_int_equal(
		    rows[i].want, utf8_next(copy, rows[i].len, &cp));
		assert_int_equal(
		    rows[i].want, utf8_next(copy, rows[i].len, NULL));
		if (rows[i].want != 0) {
			assert_int_equal(rows[i].cp, cp);
			assert_int_equal(rows[i].want, utf8_put(cp, utf8));
			assert_memory_equal(rows[i].text, utf8, rows[i].want);
		}
		free(copy);
	}
	assert_int_equal(3, utf8_put(0xd800, utf8));
	assert_memory_equal(FFFD, utf8, 3);
	assert_int_equal(3, utf8_put(0x110000, utf8));
	assert_memory_equal(FFFD, utf8, 3);
	assert_true(utf8_is_valid("", 0));
	assert_true(utf8_is_valid(TEXT("a\xc3\xa9\xf0\x9f\x98\x80")));
	assert_false(utf8_is_valid(TEXT("a\xc3")));
}

static void
cuts_fall_between_characters(void **state)
{
	static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
	static const size_t head[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
	static const size_t tail[] = {10, 10, 10, 10, 6, 6, 6, 3, 3, 1, 0, 0};
	size_t max;

	for (max = 0; max < COUNT(head); max++) {
		assert_int_equal(head[max], utf8_cut(text, 10, max));
		assert_int_equal(tail[max], utf8_cut_front(text, 10, max));
	}
	assert_int_equal(0, utf8_cut("", 0, 0));
	/* What is not UTF-8 is cut where it is asked for. */
	assert_int_equal(5, utf8_cut("\x80\x80\x80\x80\x80\x80\x80", 7, 5));
	assert_int_equal(1, utf8_cut("\x80\x80\x80", 3, 1));
	assert_int_equal(
	    7, utf8_cut_front("\x80\x80\x80\x80\x80\x80\x80", 7, 5));
}

static void
bad_bytes_are_replaced(void **state)
{
	static const struct row rows[] = {
	    {TEXT(""), ""},
	    {TEXT("a\xc3\xa9"), "a\xc3\xa9"},
	    {TEXT("\xff"), FFFD},
	    {TEXT("a\xe2\x82z"), "a" FFFD FFFD "z"},
	    {TEXT("a\0b"), "a" FFFD "b"},
	};

	assert_rows(text_make_utf8, rows, COUNT(rows));
}

static void
html_is_escaped(void **state)
{
	static const struct row rows[] = {
	    {TEXT(""), ""},
	    {TEXT("a <b>&\"'\n\t"), "a &lt;b&gt;&amp;&quot;&#39;\n\t"},
	    {TEXT("&amp;"), "&amp;amp;"},
	    {TEXT("\xff\0"), FFFD FFFD},
	};

	assert_rows(text_escape_html, rows, COUNT(rows));
}

static void
entities_are_decoded(void **state)
{
	static const struct row rows[] = {
	    {TEXT("&amp;&lt;&gt;&quot;&apos;&nbsp;"), "&<>\"'\xc2\xa0"},
	    {TEXT("&#65;&#x42;&#X43;&#65x&#x42"), "ABCAxB"},
	    {TEXT("&eacute;&Eacute;&euro;&hellip;&mdash;"),
		"\xc3\xa9\xc3\x89\xe2\x82\xac\xe2\x80\xa6\xe2\x80\x94"},
	    {TEXT("&plus;&sol;&equals;&lowbar;&commat;&NewLine;"), "+/=_@\n"},
	    {TEXT("&AElig;&zwnj;&thetasym;&there4;"),
		"\xc3\x86\xe2\x80\x8c\xcf\x91\xe2\x88\xb4"},
	    {TEXT("&#x1F600;"), "\xf0\x9f\x98\x80"},
	    {TEXT("&#0;&#xD800;&#x110000;&#4294967361;"), FFFD FFFD FFFD FFFD},
	    {TEXT("&#128;&#146;&#x9f;&#129;"),
		"\xe2\x82\xac\xe2\x80\x99\xc5\xb8\xc2\x81"},
	    {TEXT("&amp;lt;"), "&lt;"},
	    {TEXT("&&amp;&"), "&&&"},
	    {TEXT("&"), "&"},
	    {TEXT("&#"), "&#"},
	    {TEXT("&#;"), "&#;"},
	    {TEXT("&#x;"), "&#x;"},
	    {TEXT("&lt\0;"), "&lt" FFFD ";"},
	    {TEXT("&#xg;"), "&#xg;"},
	    {TEXT("&amp"), "&amp"},
	    {TEXT("&;"), "&;"},
	    {TEXT("&AMP;&Lt;&nosuch;&thetasymx;"),
		"&AMP;&Lt;&nosuch;&thetasymx;"},
	    {TEXT("AT&T; a&b"), "AT&T; a&b"},
	    {TEXT("&am\0p;"), "&am" FFFD "p;"},
	    {TEXT("\xff&lt;\0"), FFFD "<" FFFD},
	};

	assert_rows(text_decode_entities, rows, COUNT(rows));
}

/* Every name of the table is found: it is in the order that is searched. */
static void
every_named_entity_is_found(void **state)
{
	static const struct {
		const char *html;
		uint32_t cp;
	} rows[] = {
#define ENTITY(name, cp) {"&" #name ";", cp},
#include "common/entities.def"
#undef ENTITY
	};
	uint32_t cp;
	char *got;
	size_t i, len;

	for (i = 0; i < COUNT(rows); i++) {
		got = text_decode_entities(
		    rows[i].html, strlen(rows[i].html), &len);
		if (utf8_next(got, len, &cp) != len || cp != rows[i].cp)
			fail_msg("%s", rows[i].html);
		free(got);
	}
}

static void
messages_are_compared_by_their_words(void **state)
{
	static const struct row rows[] = {
	    {TEXT(""), ""},
	    {TEXT("<p>a &amp;\n b</p>"), "a & b"},
	    {TEXT("<div>Done.<br>See 7.</div>"), "Done. See 7."},
	    {TEXT("<div>\n <div>Done.<br />\nSee\t7.</div></div>\n"),
		"Done. See 7."},
	    {TEXT("Done.\nSee 7."), "Done. See 7."},
	    {TEXT("a<br>b<BR/>c<br class=\"x\">d</br>e"), "a b c d e"},
	    {TEXT("a</div>b</P>c</li>d</H1>e</h6>f</div >g"), "a b c d e f g"},
	    {TEXT("a<div>b<p>c<li>d"), "abcd"},
	    {TEXT("a</h7>b</divx>c</span>d<broken>e"), "abcde"},
	    {TEXT("<b>bo</b>ld <a href=\"x\">y</a>"), "bold y"},
	    {TEXT("a<!-- x -->b<!DOCTYPE y>c"), "abc"},
	    {TEXT("1 < 2 > 3"), "1 3"},
	    {TEXT("1 < 2"), "1 < 2"},
	    {TEXT("&lt;b&gt; &amp;lt;"), "<b> &lt;"},
	    {TEXT("a&nbsp;&nbsp;b\xc2\xa0"), "a b"},
	    {TEXT(" \t\r\n\v\f\xe2\x80\x83 "), ""},
	    {TEXT("a\xff\0z"), "a" FFFD FFFD "z"},
	    {TEXT("<>a<"), "a<"},
	    {TEXT("</"), "</"},
	    {TEXT("</>"), ""},
	};

	assert_rows(text_normalise, rows, COUNT(rows));
}

static void
one_printable_line(void **state)
{
	static const struct row rows[] = {
	    {TEXT(""), ""},
	    {TEXT(" a \n\t b\r\n"), "a b"},
	    {TEXT("a\0b\x07"
		  "c\x7f"
		  "d"),
		"a b c d"},
	    {TEXT("\x1b[31;1mred\x1b[0m!"), "red!"},
	    {TEXT("\x1b[?25l\x1b[2 qx"), "x"},
	    {TEXT("\x1b[12"), ""},
	    {TEXT("\x1b[12\nx"), "x"},
	    {TEXT("a\x1b[\xc3\xa9"), "a\xc3\xa9"},
	    {TEXT("\x1b]0;title\x07text"), "text"},
	    {TEXT("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"), "link"},
	    {TEXT("\x1bPq#0\x1b\\x"), "x"},
	    {TEXT("\x1b_apc\xc2\x9cx"), "x"},
	    {TEXT("\x1b]0;never ended"), "0;never ended"},
	    {TEXT("\x1b]0;cut\x1b[1mx"), "x"},
	    {TEXT("\x1b]a\x1b]b\x1b]c"), "c"},
	    {TEXT("\x1b(B\x1b)0\x1b#8x"), "x"},
	    {TEXT("\x1b"
		  "cx\x1b=\x1b>y"),
		"xy"},
	    {TEXT("a\x1b"), "a"},
	    {TEXT("a\x1b\x1b[1mb"), "a b"},
	    {TEXT("\xc2\x9b"
		  "31mred"),
		"red"},
	    {TEXT("\xc2\x9d"
		  "0;t\xc2\x9cx"),
		"x"},
	    {TEXT("\xc2\x9d"
		  "a\xc2\x9d"
		  "b\xc2\x9d"
		  "c"),
		"c"},
	    {TEXT("a\xc2\x85"
		  "b\xc2\x80"
		  "c\xe2\x80\xa8"
		  "d\xe2\x80\xa9"
		  "e"),
		"a b c d e"},
	    {TEXT("a\x9b"
		  "31m"),
		"a" FFFD "31m"},
	    {TEXT("\xff\xe2\x82"), FFFD FFFD FFFD},
	    {TEXT("\xc3\xa9\xc2\xa0\xf0\x9f\x98\x80"),
		"\xc3\xa9 \xf0\x9f\x98\x80"},
	};

	assert_rows(text_single_line, rows, COUNT(rows));
}

/* Nothing that a terminal obeys comes through, whatever two bytes meet. */
static void
no_pair_of_bytes_brings_a_control(void **state)
{
	char text[6] = "a??[2J", *got;
	size_t len, n;
	uint32_t cp;
	unsigned i, j;

	for (i = 0; i < 256; i++)
		for (j = 0; j < 256; j++) {
			text[1] = (char)i;
			text[2] = (char)j;
			got = text_single_line(text, sizeof(text), &len);
			for (n = 0; n < len;
			     n += utf8_next(got + n, len - n, NULL)) {
				assert_true(utf8_next(got + n, len - n, &cp));
				assert_true(
				    cp >= 0x20 && (cp < 0x7f || cp > 0x9f));
			}
			free(got);
		}
}

/* Time linear in the text: what is quadratic would take minutes here. */
static void
long_hostile_texts_end_soon(void **state)
{
	static const char *const units[] = {"\x1b]", "\x1b", "\x1b[",
	    "\xc2\x9d", "\xc2\x90x", "<", "<p", "&", "&#", "&amp", " ",
	    "\x1bP\xc2\x9b"};
	static const maker makers[] = {
	    text_single_line, text_normalise, text_decode_entities};
	struct buffer b = {0};
	size_t i, j;

	for (i = 0; i < COUNT(units); i++) {
		b.len = 0;
		while (b.len < 500000)
			buffer_add_text(&b, units[i]);
		for (j = 0; j < COUNT(makers); j++)
			free(makers[j](b.bytes, b.len, NULL));
	}
	buffer_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(utf8_characters),
	    cmocka_unit_test(cuts_fall_between_characters),
	    cmocka_unit_test(bad_bytes_are_replaced),
	    cmocka_unit_test(html_is_escaped),
	    cmocka_unit_test(entities_are_decoded),
	    cmocka_unit_test(every_named_entity_is_found),
	    cmocka_unit_test(messages_are_compared_by_their_words),
	    cmocka_unit_test(one_printable_line),
	    cmocka_unit_test(no_pair_of_bytes_brings_a_control),
	    cmocka_unit_test(long_hostile_texts_end_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
