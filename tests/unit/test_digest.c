/* SHA-256 and base64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base64.h"
#include "common/digest.h"
#include "common/xmalloc.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
sha256_of_known_texts(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
	    {"",
		"e3b0c44298fc1c149afbf4c8996fb924"
		"27ae41e4649b934ca495991b7852b855"},
	    {"abc",
		"ba7816bf8f01cfea414140de5dae2223"
		"b00361a396177a9cb410ff61f20015ad"},
	    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		"248d6a61d20638b8e5c026930c3e6039"
		"a33ce45964ff2167f6ecedd419db06c1"},
	};
	char got[DIGEST_HEX_SIZE];
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		digest_sha256_hex(rows[i].text, strlen(rows[i].text), got);
		assert_string_equal(rows[i].want, got);
	}
	digest_sha256_hex("a\0b", 3, got);
	assert_string_equal("59b271ae1bbcb1d31d41929817f4b16f"
			    "b439eb4f31520b5ad1d5ce98920a7138",
	    got);
}

static void
base64url_is_written(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *want;
	} rows[] = {
	    {"", 0, ""},
	    {"f", 1, "Zg"},
	    {"fo", 2, "Zm8"},
	    {"foo", 3, "Zm9v"},
	    {"foob", 4, "Zm9vYg"},
	    {"fooba", 5, "Zm9vYmE"},
	    {"foobar", 6, "Zm9vYmFy"},
	    {"\xfb\xff\xbf", 3, "-_-_"},
	    {"\0\0", 2, "AAA"},
	};
	char got[16], back[16];
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		base64url_encode(rows[i].bytes, rows[i].len, got);
		assert_string_equal(rows[i].want, got);
		assert_int_equal(strlen(got), BASE64_LEN(rows[i].len));
		assert_int_equal(rows[i].len,
		    base64url_decode(got, strlen(got), back, sizeof(back)));
		assert_memory_equal(rows[i].bytes, back, rows[i].len);
	}
	assert_int_equal(43, BASE64_LEN(32));
}

static void
every_byte_comes_back(void **state)
{
	uint8_t bytes[300], back[300];
	char text[BASE64_LEN(300) + 1];
	size_t len, i;

	for (len = 0; len <= sizeof(bytes); len++) {
		for (i = 0; i < len; i++)
			bytes[i] = (uint8_t)(i * 7 + len);
		base64url_encode(bytes, len, text);
		assert_int_equal(BASE64_LEN(len), strlen(text));
		assert_int_equal(
		    len, base64url_decode(text, strlen(text), back, len));
		assert_memory_equal(bytes, back, len);
	}
}

static void
strict_and_lenient_decoding_differ(void **state)
{
	static const struct {
		const char *text;
		ssize_t strict, lenient;
	} rows[] = {
	    {"", 0, 0},
	    {"Zg", 1, 1},
	    {"Zg==", -1, 1},
	    {"Zg=", -1, 1},
	    {"Zg========", -1, 1},
	    {"Zh", -1, 1}, /* bits left over */
	    {"Zm9", -1, 2},
	    {"Zm9v", 3, 3},
	    {"Zm9vY", -1, -1}, /* a character too many */
	    {"Z", -1, -1},
	    {"+/+/", -1, 3},
	    {"-_+/", -1, 3},
	    {"-_-_", 3, 3},
	    {"Zm\r\n9v", -1, 3},
	    {"\nZm9v\n", -1, 3},
	    {"Zm 9v", -1, -1},
	    {"Zm=9v", -1, -1},
	    {"Zm9v.", -1, -1},
	    {"Zm9\xc3\xa9", -1, -1},
	    {"====", -1, 0},
	};
	char out[16];
	size_t i, len;

	for (i = 0; i < COUNT(rows); i++) {
		len = strlen(rows[i].text);
		assert_int_equal(rows[i].strict,
		    base64url_decode(rows[i].text, len, out, sizeof(out)));
		assert_int_equal(rows[i].lenient,
		    base64_decode_lenient(rows[i].text, len, out, sizeof(out)));
	}
}

static void
decoding_keeps_to_its_room(void **state)
{
	char *out = xmalloc(2);

	assert_int_equal(2, base64url_decode("Zm8", 3, out, 2));
	assert_int_equal(-1, base64url_decode("Zm9v", 4, out, 2));
	assert_int_equal(-1, base64_decode_lenient("Zm9v", 4, out, 2));
	assert_int_equal(-1, base64_decode_lenient("Zg", 2, out, 0));
	free(out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sha256_of_known_texts),
	    cmocka_unit_test(base64url_is_written),
	    cmocka_unit_test(every_byte_comes_back),
	    cmocka_unit_test(strict_and_lenient_decoding_differ),
	    cmocka_unit_test(decoding_keeps_to_its_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
