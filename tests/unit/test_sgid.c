/* Signed global ids: the known vectors, the envelope, the global id, and the
 * Marshal subset against hostile bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base64.h"
#include "common/buffer.h"
#include "common/marshal.h"
#include "common/sgid.h"
#include "common/xmalloc.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TEXT(s) (s), sizeof(s) - 1
#define AGENT 52007412

#define NEW_LAYOUT "BAh7BkkiC19yYWlscwY6BkVUewdJIglkYXRhBjsAVEki"

/* The person that an exact copy of SGID names; 0 for none. */
static int64_t
person_of(const char *sgid, size_t len)
{
	char *copy = xmemdup(sgid, len);
	int64_t person = -1;
	bool is_person = sgid_person(copy, len, &person);

	free(copy);
	assert_true(is_person ? person > 0 : person == -1);
	return is_person ? person : 0;
}

/* The same of bytes that are encoded first. */
static int64_t
person_in(const void *bytes, size_t len)
{
	char *text = xmalloc(BASE64_LEN(len) + 1);
	int64_t person;

	base64url_encode(bytes, len, text);
	person = person_of(text, strlen(text));
	free(text);
	return person;
}

static void
vectors(void **state)
{
	static const struct {
		const char *sgid;
		int64_t want;
	} rows[] = {
	    {"BAh7CEkiCGdpZAY6BkVUSSIrZ2lkOi8vYmMzL1BlcnNvbi8xMDQ5NzE1OTE1"
	     "P2V4cGlyZXNfaW4GOwBUSSIMcHVycG9zZQY7AFRJIg9hdHRhY2hhYmxlBjsA"
	     "VEkiD2V4cGlyZXNfYXQGOwBUMA==--aeb392",
		1049715915},
	    {NEW_LAYOUT "KWdpZDovL2JjMy9QZXJzb24vNTIwMDc0MTI/ZXhwaXJlc19p"
			"bgY7AFRJIghwdXIGOwBUSSIPYXR0YWNoYWJsZQY7AFQ=--x",
		AGENT},
	    {NEW_LAYOUT "HmdpZDovL2JjMy9QZXJzb24vNTIwMDc0MTIGOwBUSSIIcHVy"
			"BjsAVEkiD2F0dGFjaGFibGUGOwBU",
		AGENT},
	    {"eyJfcmFpbHMiOnsiZGF0YSI6ImdpZDovL2JjMy9QZXJzb24vNTIwMDc0MTIi"
	     "LCJwdXIiOiJhdHRhY2hhYmxlIn19",
		AGENT},
	    {"eyJnaWQiOiJnaWQ6Ly9iYzMvUGVyc29uLzUyMDA3NDEyIiwicHVycG9zZSI6"
	     "ImF0dGFjaGFibGUiLCJleHBpcmVzX2F0IjpudWxsfQ",
		AGENT},
	    /* purpose "readable" */
	    {NEW_LAYOUT "HmdpZDovL2JjMy9QZXJzb24vNTIwMDc0MTIGOwBUSSIIcHVy"
			"BjsAVEkiDXJlYWRhYmxlBjsAVA==",
		0},
	    /* a Blob */
	    {NEW_LAYOUT "K2dpZDovL2JjMy9BY3RpdmVTdG9yYWdlOjpCbG9iLzUyMDA3"
			"NDEyBjsAVEkiCHB1cgY7AFRJIg9hdHRhY2hhYmxlBjsAVA==",
		0},
	    /* a trailing byte */
	    {NEW_LAYOUT "HmdpZDovL2JjMy9QZXJzb24vNTIwMDc0MTIGOwBUSSIIcHVy"
			"BjsAVEkiD2F0dGFjaGFibGUGOwBUMA==",
		0},
	    /* a Document whose path holds a person's global id */
	    {NEW_LAYOUT "MWdpZDovL2JjMy9Eb2N1bWVudC9naWQ6Ly9iYzMvUGVyc29u"
			"LzUyMDA3NDEyBjsAVEkiCHB1cgY7AFRJIg9hdHRhY2hhYmxl"
			"BjsAVA==",
		0},
	    /* a hash that claims 2^31-1 pairs */
	    {"BAh7BP///38=", 0},
	    /* 40 arrays, one in the other */
	    {"BAhbBlsGWwZbBlsGWwZbBlsGWwZbBlsGWwZbBlsGWwZbBlsGWwZbBlsGWwZb"
	     "BlsGWwZbBlsGWwZbBlsGWwZbBlsGWwZbBlsGWwZbBlsGWwZbBjA=",
		0},
	};
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		if (person_of(rows[i].sgid, strlen(rows[i].sgid)) !=
		    rows[i].want)
			fail_msg("row %zu", i);
}

#define JSON_AGENT                                                             \
	"eyJfcmFpbHMiOnsiZGF0YSI6ImdpZDovL2JjMy9QZXJzb24vNTIwMDc0MTIiLCJwdXIi" \
	"OiJhdHRhY2hhYmxlIn19"

static void
signature_and_padding(void **state)
{
	static const struct {
		const char *sgid;
		int64_t want;
	} rows[] = {
	    {JSON_AGENT, AGENT},
	    {JSON_AGENT "--", AGENT},
	    {JSON_AGENT "--signature", AGENT},
	    {JSON_AGENT "--!\xc3\xa9", AGENT},
	    {JSON_AGENT "==", AGENT},
	    {"  " JSON_AGENT "--x\n\t", AGENT},
	    {"\xc2\xa0\xe2\x80\x83" JSON_AGENT "\xe3\x80\x80", AGENT},
	    {JSON_AGENT "-x", 0},
	    {JSON_AGENT "--a--b", 0}, /* what stands before the last */
	    {"--" JSON_AGENT, 0},
	    {JSON_AGENT ".", 0},
	    {JSON_AGENT "A", 0},
	    {"", 0},
	    {" ", 0},
	    {"--", 0},
	    {"---", 0},
	    {"=", 0},
	    {"====", 0},
	    {"\xff", 0},
	};
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		if (person_of(rows[i].sgid, strlen(rows[i].sgid)) !=
		    rows[i].want)
			fail_msg("row %zu: %s", i, rows[i].sgid);
}

/* A payload may hold "--" itself: base64url of FB EF BE is "----". */
static void
a_payload_may_hold_two_dashes(void **state)
{
	struct buffer b = {0};
	char *text;
	size_t pad;

	for (pad = 0; pad < 3; pad++) {
		buffer_add_text(&b,
		    "{\"_rails\":{\"data\":"
		    "\"gid://bc3/Person/52007412\",\"pur\":"
		    "\"attachable\"},\"x\":\"");
		buffer_add(&b, "   ", pad);
		buffer_add_text(&b, "\xef\xbe\xbe\xef\xbe\xbb\xef\xbe\xbe\"}");
		text = xmalloc(BASE64_LEN(b.len) + 1);
		base64url_encode(b.bytes, b.len, text);
		if (strstr(text, "--") != NULL)
			break;
		free(text);
		buffer_free(&b);
	}
	assert_true(pad < 3);
	assert_int_equal(AGENT, person_of(text, strlen(text)));
	free(text);
	buffer_free(&b);
}

static void
the_global_id_is_read_structurally(void **state)
{
	static const struct {
		const char *gid; /* as it stands in JSON */
		int64_t want;
	} rows[] = {
	    {"gid://bc3/Person/1", 1},
	    {"GID://bc3/Person/1", 1},
	    {"gid://bc3/Person/1?expires_in", 1},
	    {"gid://bc3/Person/1?expires_in=%zz", 1},
	    {"gid://bc3/Person/1#x", 1},
	    {"gid://bc3/Person/0001", 1},
	    {"gid://bc3/Person/9223372036854775807", INT64_MAX},
	    {"gid://bc3/%50erson%2F7", 7},
	    {"gid://bc3/Person/%37", 7},
	    {"gid://u@bc3:80/Person/1", 1},
	    {"gid://bc3/Person/9223372036854775808", 0},
	    {"gid://bc3/Person/18446744073709551617", 0},
	    {"gid://bc3/Person/0", 0},
	    {"gid://bc3/Person/", 0},
	    {"gid://bc3/Person", 0},
	    {"gid://bc3/Person/-1", 0},
	    {"gid://bc3/Person/+1", 0},
	    {"gid://bc3/Person/1 ", 0},
	    {"gid://bc3/Person/ 1", 0},
	    {"gid://bc3/Person/1x", 0},
	    {"gid://bc3/Person/1/", 0},
	    {"gid://bc3/Person/1/2", 0},
	    {"gid://bc3//Person/1", 0},
	    {"gid://bc3/person/1", 0},
	    {"gid://bc3/People/1", 0},
	    {"gid://bc3/x/Person/1", 0},
	    {"gid://bc3/Person/%zz", 0},
	    {"gid://bc3/Person/%3", 0},
	    {"gid://bc3/Person/\\u0661", 0}, /* an Arabic digit */
	    {"gid://bc3/Person/1\\u0000", 0},
	    {"gid://bc3/Person/1?a\\nb", 0},
	    {"gid:///Person/1", 0},
	    {"gid://:80/Person/1", 0},
	    {"gid:/bc3/Person/1", 0},
	    {"gid:Person/1", 0},
	    {"http://bc3/Person/1", 0},
	    {"gid2://bc3/Person/1", 0},
	    {"//bc3/Person/1", 0},
	    {"Person/1", 0},
	    {"", 0},
	};
	char text[256];
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		(void)snprintf(text, sizeof(text),
		    "{\"gid\":\"%s\",\"purpose\":\"attachable\"}", rows[i].gid);
		if (person_in(text, strlen(text)) != rows[i].want)
			fail_msg("%s", rows[i].gid);
	}
}

#define GID "\"gid://bc3/Person/7\""

static void
the_envelope_decides(void **state)
{
	static const struct {
		const char *json;
		int64_t want;
	} rows[] = {
	    {"{\"_rails\":{\"data\":" GID ",\"pur\":\"attachable\"}}", 7},
	    {"{\"purpose\":\"attachable\",\"gid\":" GID "} \n", 7},
	    /* once _rails is a map, the old layout is not looked at */
	    {"{\"_rails\":{},\"purpose\":\"attachable\",\"gid\":" GID "}", 0},
	    {"{\"_rails\":{\"pur\":\"x\",\"data\":" GID
	     "},\"purpose\":\"attachable\",\"gid\":" GID "}",
		0},
	    {"{\"_rails\":1,\"purpose\":\"attachable\",\"gid\":" GID "}", 7},
	    {"{\"_rails\":null,\"purpose\":\"attachable\",\"gid\":" GID "}", 7},
	    {"{\"_rails\":{\"data\":" GID ",\"purpose\":\"attachable\"}}", 0},
	    {"{\"_rails\":{\"gid\":" GID ",\"pur\":\"attachable\"}}", 0},
	    {"{\"_rails\":{\"data\":" GID ",\"pur\":\"Attachable\"}}", 0},
	    {"{\"_rails\":{\"data\":" GID ",\"pur\":\"attachable\\u0000\"}}",
		0},
	    {"{\"_rails\":{\"data\":" GID ",\"pur\":[\"attachable\"]}}", 0},
	    {"{\"_rails\":{\"data\":7,\"pur\":\"attachable\"}}", 0},
	    {"{\"_rails\":{\"data\":[" GID "],\"pur\":\"attachable\"}}", 0},
	    {"{\"gid\":" GID "}", 0},
	    {"{\"purpose\":\"attachable\"}", 0},
	    {"{\"purpose\":\"x\",\"gid\":" GID ",\"purpose\":\"attachable\"}",
		7},
	    {"{\"purpose\":\"attachable\",\"gid\":" GID "}x", 0},
	    {"{\"purpose\":\"attachable\",\"gid\":" GID, 0},
	    {"[{\"purpose\":\"attachable\",\"gid\":" GID "}]", 0},
	    {" {\"purpose\":\"attachable\",\"gid\":" GID "}", 0},
	    {GID, 0},
	    {"{}", 0},
	};
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		if (person_in(rows[i].json, strlen(rows[i].json)) !=
		    rows[i].want)
			fail_msg("%s", rows[i].json);
}

static void
lengths_are_bounded(void **state)
{
	static const char head[] =
	    "{\"purpose\":\"attachable\",\"gid\":" GID ",\"x\":\"";
	const char *rest = &JSON_AGENT[1];
	char *bytes = xmalloc(SGID_DECODED_MAX + 1), *text;
	size_t len;

	memset(bytes, 'x', SGID_DECODED_MAX + 1);
	memcpy(bytes, head, sizeof(head) - 1);
	for (len = SGID_DECODED_MAX; len <= SGID_DECODED_MAX + 1; len++) {
		memcpy(bytes + len - 2, "\"}", 2);
		assert_int_equal(
		    len == SGID_DECODED_MAX ? 7 : 0, person_in(bytes, len));
		bytes[len - 2] = 'x';
	}
	/* Line ends count in the encoded length although they are skipped. */
	text = xmalloc(SGID_ENCODED_MAX + 1);
	for (len = SGID_ENCODED_MAX; len <= SGID_ENCODED_MAX + 1; len++) {
		memset(text, '\n', len);
		text[0] = rest[-1];
		memcpy(text + len - strlen(rest), rest, strlen(rest));
		assert_int_equal(
		    len == SGID_ENCODED_MAX ? AGENT : 0, person_of(text, len));
	}
	free(text);
	free(bytes);
}

/* What marshal_read() makes of the bytes after the version, as JSON. */
static void
assert_marshal(const char *bytes, size_t len, const char *want)
{
	char *all = xmalloc(len + 2), *got = NULL;
	json_t *value;

	memcpy(all, "\x04\x08", 2);
	memcpy(all + 2, bytes, len);
	value = marshal_read(all, len + 2, SGID_DEPTH_MAX);
	free(all);
	if (value != NULL)
		got = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	json_decref(value);
	if (want == NULL) {
		assert_null(got);
		return;
	}
	assert_non_null(got);
	assert_string_equal(want, got);
	free(got);
}

static void
marshal_values(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *want; /* NULL: undecodable */
	} rows[] = {
	    {TEXT("0"), "null"},
	    {TEXT("T"), "true"},
	    {TEXT("F"), "false"},
	    {TEXT("i\0"), "0"},
	    {TEXT("i\x06"), "1"},
	    {TEXT("i\x7f"), "122"},
	    {TEXT("i\xfa"), "-1"},
	    {TEXT("i\x80"), "-123"},
	    {TEXT("i\x01\x7b"), "123"},
	    {TEXT("i\x01\xff"), "255"},
	    {TEXT("i\xff\x84"), "-124"},
	    {TEXT("i\x02\x00\x01"), "256"},
	    {TEXT("i\xfe\xff\xfe"), "-257"},
	    {TEXT("i\x03\xff\xff\xff"), "16777215"},
	    {TEXT("i\x04\xff\xff\xff\x3f"), "1073741823"},
	    {TEXT("i\x04\xff\xff\xff\xff"), "4294967295"},
	    {TEXT("i\xfc\x00\x00\x00\xc0"), "-1073741824"},
	    {TEXT("i\xfc\x00\x00\x00\x00"), "-4294967296"},
	    {TEXT("\"\0"), "\"\""},
	    {TEXT("\"\x07"
		  "ab"),
		"\"ab\""},
	    {TEXT(":\x06"
		  "a"),
		"\"a\""},
	    {TEXT("[\0"), "[]"},
	    {TEXT("[\x08"
		  "0TF"),
		"[null,true,false]"},
	    {TEXT("[\x08:\x06"
		  "a:\x06"
		  "b;\x06"),
		"[\"a\",\"b\",\"b\"]"},
	    {TEXT("{\0"), "{}"},
	    {TEXT("{\x06:\x06"
		  "ai\x06"),
		"{\"a\":1}"},
	    {TEXT("{\x07:\x06"
		  "ai\x06\"\x06"
		  "ai\x07"),
		"{\"a\":2}"},
	    {TEXT("{\x06[\0i\x06"), NULL},
	    {TEXT("{\x06i\x06i\x06"), NULL},
	    {TEXT("{\x06"
		  "0i\x06"),
		NULL},
	    /* a string with its encoding; the symbol in it counts */
	    {TEXT("[\x07I\"\x06"
		  "a\x06:\x06"
		  "ET;\0"),
		"[\"a\",\"E\"]"},
	    {TEXT("I\"\x06"
		  "a\0"),
		"\"a\""},
	    {TEXT("I\"\x06"
		  "a\x07:\x06"
		  "ET"),
		NULL},
	    {TEXT("I\"\x06"
		  "a"),
		NULL},
	    {TEXT(";\0"), NULL},
	    {TEXT("[\x07:\x06"
		  "a;\x06"),
		NULL},
	    {TEXT("[\x07:\x06"
		  "a;\xfa"),
		NULL},
	    {TEXT("00"), NULL},
	    {TEXT(""), NULL},
	    {TEXT("i"), NULL},
	    {TEXT("i\x01"), NULL},
	    {TEXT("i\x04\xff\xff\xff"), NULL},
	    {TEXT("\"\x07"
		  "a"),
		NULL},
	    {TEXT("\"\xfa"), NULL},
	    {TEXT("\"\x04\xff\xff\xff\xff"), NULL},
	    {TEXT("\"\x04\xff\xff\xff\x7f"), NULL},
	    {TEXT("[\x04\xff\xff\xff\x7f"), NULL},
	    {TEXT("[\xfa"), NULL},
	    {TEXT("{\xfa"), NULL},
	    {TEXT("[\x07"
		  "0"),
		NULL},
	    {TEXT("@\0"), NULL},
	    {TEXT("l+\x07\0\0\0\0"), NULL},
	    {TEXT("f\x06"
		  "1"),
		NULL},
	    {TEXT("o:\x06"
		  "A\0"),
		NULL},
	    {TEXT("/\x06"
		  "a\0"),
		NULL},
	    {TEXT("}\0"), NULL},
	    {TEXT("u:\x06"
		  "A\0"),
		NULL},
	    {TEXT("e:\x06"
		  "A0"),
		NULL},
	    {TEXT("\0"), NULL},
	    {TEXT("\xff"), NULL},
	};
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		assert_marshal(rows[i].bytes, rows[i].len, rows[i].want);
	assert_null(marshal_read("\x04", 1, 32));
	assert_null(marshal_read("\x04\x09"
				 "0",
	    3, 32));
	assert_null(marshal_read("", 0, 32));
}

/* DEPTH values in one another: arrays, the innermost one nil. */
static bool
marshal_reads_depth(size_t depth, const char *wrapper, size_t each)
{
	struct buffer b = {0};
	json_t *value;
	size_t i;

	buffer_add_text(&b, "\x04\x08");
	for (i = 1; i < depth; i++)
		buffer_add(&b, wrapper, each);
	buffer_add_char(&b, '0');
	if (each == 1)
		for (i = 1; i < depth; i++)
			buffer_add_char(&b, '\0');
	value = marshal_read(b.bytes, b.len, SGID_DEPTH_MAX);
	json_decref(value);
	buffer_free(&b);
	return value != NULL;
}

static void
marshal_depth_is_bounded(void **state)
{
	assert_true(marshal_reads_depth(SGID_DEPTH_MAX, "[\x06", 2));
	assert_false(marshal_reads_depth(SGID_DEPTH_MAX + 1, "[\x06", 2));
	assert_true(marshal_reads_depth(SGID_DEPTH_MAX, "I", 1));
	assert_false(marshal_reads_depth(SGID_DEPTH_MAX + 1, "I", 1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(vectors),
	    cmocka_unit_test(signature_and_padding),
	    cmocka_unit_test(a_payload_may_hold_two_dashes),
	    cmocka_unit_test(the_global_id_is_read_structurally),
	    cmocka_unit_test(the_envelope_decides),
	    cmocka_unit_test(lengths_are_bounded),
	    cmocka_unit_test(marshal_values),
	    cmocka_unit_test(marshal_depth_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
