#include <string.h>
#include <strings.h>

#include "common/base64.h"
#include "common/json.h"
#include "common/marshal.h"
#include "common/sgid.h"
#include "common/url.h"
#include "common/utf8.h"

static const struct json_rules envelope_rules = {
    .max_bytes = SGID_DECODED_MAX,
    .max_depth = SGID_DEPTH_MAX,
    .max_members = SGID_DECODED_MAX,
    .flags = JSON_RULE_LAST_WINS | JSON_RULE_BIG_AS_REAL,
};

static bool
member_is(const json_t *map, const char *name, const char *value)
{
	const json_t *got = json_object_get(map, name);

	return json_is_string(got) &&
	    json_string_length(got) == strlen(value) &&
	    memcmp(json_string_value(got), value, strlen(value)) == 0;
}

/* The global id in either layout of the envelope; the newer one decides. */
static const json_t *
envelope_gid(const json_t *top)
{
	const json_t *rails = json_object_get(top, "_rails");

	if (json_is_object(rails))
		return member_is(rails, "pur", "attachable")
		    ? json_object_get(rails, "data")
		    : NULL;
	return member_is(top, "purpose", "attachable")
	    ? json_object_get(top, "gid")
	    : NULL;
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return ((c | 0x20) - 'a' + 10) & 0xf;
}

/* The next byte of a path whose escapes url_parse() has checked. */
static char
path_next(const char **at)
{
	char c = **at;

	if (c != '%') {
		*at += 1;
		return c;
	}
	c = (char)(hex_value((*at)[1]) << 4 | hex_value((*at)[2]));
	*at += 3;
	return c;
}

/* Exactly /Person/<digits>, once its escapes are read. */
static bool
path_person(const struct url_part *path, int64_t *person)
{
	static const char model[] = "/Person/";
	const char *at = path->bytes, *end = path->bytes + path->len;
	int64_t id = 0;
	size_t i;
	char c;

	for (i = 0; model[i] != '\0'; i++)
		if (at == end || path_next(&at) != model[i])
			return false;
	while (at < end) {
		c = path_next(&at);
		if (c < '0' || c > '9' || __builtin_mul_overflow(id, 10, &id) ||
		    __builtin_add_overflow(id, c - '0', &id))
			return false;
	}
	if (id < 1)
		return false;
	*person = id;
	return true;
}

static bool
gid_person(const json_t *gid, int64_t *person)
{
	struct url url;

	if (!json_is_string(gid) ||
	    url_parse(json_string_value(gid), json_string_length(gid), &url,
		NULL) == -1)
		return false;
	if (url.scheme.len != 3 || strncasecmp(url.scheme.bytes, "gid", 3) != 0)
		return false;
	return path_person(&url.path, person);
}

static bool
payload_person(const char *payload, size_t len, int64_t *person)
{
	char bytes[SGID_DECODED_MAX];
	json_t *top = NULL;
	ssize_t n;
	bool is_person;

	if (len == 0 || len > SGID_ENCODED_MAX)
		return false;
	n = base64_decode_lenient(payload, len, bytes, sizeof(bytes));
	if (n < 1)
		return false;
	if (bytes[0] == '{')
		top = json_read(bytes, (size_t)n, &envelope_rules, NULL);
	else
		top = marshal_read(bytes, (size_t)n, SGID_DEPTH_MAX);
	is_person =
	    json_is_object(top) && gid_person(envelope_gid(top), person);
	json_decref(top);
	return is_person;
}

/* White space at both ends off, also what is no ASCII. */
static void
trim(const char **text, size_t *len)
{
	uint32_t cp;
	size_t n;

	while ((n = utf8_next(*text, *len, &cp)) != 0 && utf8_is_space(cp)) {
		*text += n;
		*len -= n;
	}
	while (*len != 0) {
		n = *len - utf8_cut(*text, *len, *len - 1);
		if (utf8_next(*text + *len - n, n, &cp) != n ||
		    !utf8_is_space(cp))
			break;
		*len -= n;
	}
}

bool
sgid_person(const char *sgid, size_t len, int64_t *person)
{
	size_t i;

	trim(&sgid, &len);
	/* The last "--" parts payload and signature, unless it is payload. */
	for (i = len; i-- > 1;) {
		if (i + 1 < len && sgid[i] == '-' && sgid[i + 1] == '-') {
			if (payload_person(sgid, i, person))
				return true;
			break;
		}
	}
	return payload_person(sgid, len, person);
}
