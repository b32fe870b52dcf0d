/* JSON of foreign bytes under each role's kind of rules. */
#include <string.h>

#include "common/json.h"
#include "common/text.h"
#include "tests/fuzz/fuzz.h"

static const struct json_rules every_rule[] = {
    {.max_bytes = 65536, .max_depth = 16, .max_members = 1000},
    {.max_bytes = 65536,
	.max_depth = 64,
	.max_members = 10000,
	.flags = JSON_RULE_LAST_WINS | JSON_RULE_BIG_AS_REAL},
    {.max_bytes = 65536,
	.max_depth = 32,
	.max_members = 4000,
	.flags = JSON_RULE_NO_FFFD_NAMES,
	.exempt = "details"},
    {.max_bytes = 65536,
	.max_depth = 32,
	.max_members = 4000,
	.flags = JSON_RULE_NO_SURROGATES},
};
static const struct json_rules *const wire = &every_rule[1];

/* What was read can be written and read again, and is the same. */
static void
check_tree(json_t *tree)
{
	char *text = json_dumps(tree, JSON_ENCODE_ANY | JSON_COMPACT);
	json_t *again;

	MUST(text != NULL);
	again = json_read(text, strlen(text), wire, NULL);
	MUST(again != NULL || strlen(text) > wire->max_bytes);
	MUST(again == NULL || json_equal(tree, again));
	json_decref(again);
	free(text);
}

/* The spans of an array's elements lie in it and in order. */
static void
check_elements(const struct json_span *array)
{
	struct json_span element;
	const char *from = array->bytes;
	size_t at = 0;

	while (json_span_next(array, &at, &element)) {
		MUST(element.bytes > from && element.len > 0);
		from = element.bytes + element.len - 1;
		MUST(from < array->bytes + array->len);
	}
}

static void
check_spans(const char *text, size_t len, const json_t *tree)
{
	struct json_span span;

	MUST(json_span(text, len, "", &span) == 0);
	check_elements(&span);
	if (json_span(text, len, "id", &span) == 0)
		MUST(json_object_get(tree, "id") != NULL);
	else
		MUST(json_object_get(tree, "id") == NULL);
	(void)json_span(text, len, "events/1/details", &span);
}

/* Any bytes, written as a string, are JSON that reads as cleaned text. */
static void
check_written(const char *bytes, size_t len)
{
	struct json_rules large = *wire;
	struct buffer b = {0};
	json_t *tree;
	char *clean;
	size_t clean_len;

	large.max_bytes = SIZE_MAX;
	json_write_string(&b, bytes, len);
	tree = json_read(b.bytes, b.len, &large, NULL);
	MUST(json_is_string(tree));
	clean = text_make_utf8(bytes, len, &clean_len);
	if (memchr(bytes, '\0', len) == NULL)
		MUST(strcmp(clean, json_string_value(tree)) == 0);
	free(clean);
	json_decref(tree);
	buffer_free(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const free_paths[] = {"worker/env", "a/0", NULL};
	const char *text = (const char *)data;
	struct json_span span;
	struct error e = {0};
	json_t *tree;
	int64_t id;
	size_t i;

	for (i = 0; i < sizeof(every_rule) / sizeof(every_rule[0]); i++) {
		tree = json_read(text, size, &every_rule[i], &e);
		MUST(tree == NULL ||
		    json_check(text, size, &every_rule[i], NULL) == 0);
		MUST((tree == NULL) == (e.code != 0));
		e.code = 0;
		if (tree == NULL)
			continue;
		check_tree(tree);
		check_spans(text, size, tree);
		(void)json_id_argument(tree, "id", &id, NULL);
		json_decref(tree);
	}
	(void)json_span(text, size, "id", &span);
	(void)json_check_keys(text, size, free_paths, &e);
	check_written(text, size);
	return 0;
}
