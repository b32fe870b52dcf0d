/* URLs, queries and durations. */
#include <string.h>

#include "common/duration.h"
#include "common/url.h"
#include "common/xmalloc.h"
#include "tests/fuzz/fuzz.h"

/* A pair that was taken apart, put together again, is the same pair. */
static void
check_pair(const struct url_pair *pair)
{
	struct buffer b = {0};
	struct url_query again;

	url_escape(&b, pair->name, pair->name_len);
	buffer_add_char(&b, '=');
	url_escape(&b, pair->value, pair->value_len);
	MUST(url_query_parse(b.bytes, b.len, &again, NULL) == 0);
	MUST(again.count == 1);
	MUST(again.pairs[0].name_len == pair->name_len);
	MUST(again.pairs[0].value_len == pair->value_len);
	MUST(memcmp(again.pairs[0].name, pair->name, pair->name_len) == 0);
	MUST(memcmp(again.pairs[0].value, pair->value, pair->value_len) == 0);
	url_query_free(&again);
	buffer_free(&b);
}

static void
check_query(const char *text, size_t len)
{
	struct url_query q;
	size_t i;

	if (url_query_parse(text, len, &q, NULL) == -1)
		return;
	for (i = 0; i < q.count; i++)
		check_pair(&q.pairs[i]);
	url_query_free(&q);
}

/* An origin is its own origin, and a link. */
static void
check_origin(const char *text, size_t len)
{
	char *origin, *again;

	if (url_origin(text, len, &origin, NULL) == -1)
		return;
	MUST(url_is_link(text, len));
	MUST(url_check_continuation(text, len, origin, NULL) == 0);
	MUST(url_origin(origin, strlen(origin), &again, NULL) == 0);
	MUST(strcmp(origin, again) == 0);
	free(again);
	free(origin);
}

static void
check_duration(const char *text)
{
	char printed[DURATION_SIZE];
	int64_t ns, again;

	if (duration_parse(text, &ns, NULL) == -1)
		return;
	duration_print(ns, printed);
	MUST(duration_parse(printed, &again, NULL) == 0 && again == ns);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	char *string = xstrndup(text, size);

	check_origin(text, size);
	check_query(text, size);
	if (url_is_plain(text, size))
		MUST(url_is_link(text, size) && size <= URL_PLAIN_MAX);
	(void)url_check_base(text, size, NULL);
	check_duration(string);
	free(string);
	return 0;
}
