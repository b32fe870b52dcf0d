/* Rich text: whoever is mentioned can be taken out, and only they go. */
#include <string.h>

#include "common/mention.h"
#include "common/text.h"
#include "tests/fuzz/fuzz.h"

#define IDS_MAX 64

/* Every other person is still found, in order. */
static void
check_others(const int64_t *ids, size_t count, int64_t person, const char *text,
    size_t len)
{
	int64_t after[IDS_MAX];
	size_t i, at = 0, n = mention_find(text, len, after, IDS_MAX);

	if (count == IDS_MAX)
		return;
	for (i = 0; i < count; i++) {
		if (ids[i] == person)
			continue;
		MUST(at < n && after[at] == ids[i]);
		at++;
	}
	MUST(at == n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *html = (const char *)data;
	int64_t ids[IDS_MAX];
	enum mention_stripped how;
	size_t count, i, len;
	char *out;

	count = mention_find(html, size, ids, IDS_MAX);
	for (i = 0; i < count; i++) {
		MUST(mention_has(html, size, ids[i]));
		how = mention_strip(html, size, ids[i], &out, &len);
		MUST(how == MENTION_STRIPPED);
		MUST(!mention_has(out, len, ids[i]));
		check_others(ids, count, ids[i], out, len);
		free(out);
	}
	how = mention_strip(html, size, INT64_MAX, &out, &len);
	MUST(how != MENTION_UNCHANGED ||
	    (len == size && memcmp(html, out, len) == 0));
	free(out);
	free(text_normalise(html, size, NULL));
	return 0;
}
