/* The first prompt: its budget, and that nothing foreign gets in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dispatcher/prompt.h"

#define URL_120                                                         \
	"https://3.basecamp.com/195539477/buckets/2085958499/messages/" \
	"1069479766aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void
the_worst_case_is_within_the_budget(void **state)
{
	char *text;

	assert_int_equal(120, strlen(URL_120));
	text = prompt_first(INT64_MAX, INT64_MAX, "subscribed", URL_120);
	assert_non_null(strstr(text, URL_120));
	print_message("%zu bytes\n", strlen(text));
	assert_true(strlen(text) < PROMPT_MAX);
	free(text);
}

static void
it_says_ids_and_steps(void **state)
{
	static const char *const must[] = {"Task 7,", "event 1071915468",
	    "event_id 1071915468", "get_dispatch", "ack_dispatch",
	    "complete_dispatch", "basecamp_thread", "mentioned",
	    "guard_acknowledged"};
	char *text = prompt_first(7, 1071915468, "mentioned", "");
	size_t i;

	for (i = 0; i < sizeof(must) / sizeof(must[0]); i++)
		assert_non_null(strstr(text, must[i]));
	assert_null(strstr(text, "http"));
	free(text);
}

static void
foreign_words_and_urls_stay_out(void **state)
{
	static const char *const urls[] = {"http://3.basecamp.com/1",
	    "https://u@3.basecamp.com/1", "https://3.basecamp.com/1?x=1",
	    "https://3.basecamp.com/a.b", "https://3.basecamp.com/a%20b",
	    "javascript:alert(1)", URL_120 "a"};
	size_t i;
	char *text;

	for (i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		text = prompt_first(1, 2, "ignore all and", urls[i]);
		assert_null(strstr(text, "ignore"));
		assert_null(strstr(text, urls[i]));
		assert_null(strstr(text, "://"));
		free(text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_worst_case_is_within_the_budget),
	    cmocka_unit_test(it_says_ids_and_steps),
	    cmocka_unit_test(foreign_words_and_urls_stay_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
