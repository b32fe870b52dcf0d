#include <errno.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "tests/simulator/exchange.h"

#define PAGE_MAX 1000000

json_t *
text_json(const char *text, size_t len)
{
	json_t *json = json_stringn(text, len);
	char *copy;
	size_t i;

	if (json != NULL)
		return json;
	copy = xstrndup(text, len);
	len = strlen(copy);
	for (i = 0; i < len; i++) {
		if ((unsigned char)copy[i] >= 0x80)
			copy[i] = '?';
	}
	json = json_stringn(copy, len);
	free(copy);
	return json;
}

static json_t *
param_decode(const char *text, size_t len)
{
	char *raw = xstrndup(text, len), *plain;
	size_t size = 0;
	json_t *json;

	plain = evhttp_uridecode(raw, 1, &size);
	free(raw);
	if (plain == NULL)
		return json_string("");
	json = text_json(plain, strlen(plain) < size ? strlen(plain) : size);
	free(plain);
	return json;
}

static void
param_add(json_t *params, const char *pair, size_t len)
{
	const char *equals = memchr(pair, '=', len);
	size_t key_len = equals == NULL ? len : (size_t)(equals - pair);
	json_t *key = param_decode(pair, key_len);
	json_t *value = equals == NULL
	    ? json_string("")
	    : param_decode(equals + 1, len - key_len - 1);

	if (json_object_get(params, json_string_value(key)) == NULL)
		json_object_set(params, json_string_value(key), value);
	json_decref(key);
	json_decref(value);
}

json_t *
params_parse(const char *text, size_t len)
{
	json_t *params = json_object();
	const char *end = text + len, *next;

	while (text < end) {
		next = memchr(text, '&', (size_t)(end - text));
		if (next == NULL)
			next = end;
		if (next > text)
			param_add(params, text, (size_t)(next - text));
		text = next + 1;
	}
	return params;
}

size_t
exchange_page(const struct exchange *x)
{
	const char *text = exchange_query(x, "page");
	unsigned long page;

	if (text == NULL)
		return 1;
	errno = 0;
	page = strtoul(text, NULL, 10);
	if (strspn(text, "0123456789") != strlen(text) || errno != 0 ||
	    page > PAGE_MAX)
		return 0;
	return page;
}
