/* What worker_settings.h says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "common/xmalloc.h"
#include "tests/unit/worker_settings.h"

struct settings *
settings_with(const struct paths *paths, const char *worker)
{
	static char profile[] = "demo";
	const struct options plain = {.profile = profile, .insecure = true};
	struct settings *s;
	struct error e;
	char *text;
	int len = xasprintf(&text,
	    "{\"version\":1,\"profile\":\"demo\",\"account_id\":\"1\","
	    "\"agent\":{\"person_id\":2,\"kind\":\"agent\"},"
	    "\"trust\":{\"mode\":\"operator\",\"operator_id\":3},"
	    "\"worker\":%s}",
	    worker);

	s = settings_parse("f", text, (size_t)len, paths, &plain, 12345, &e);
	if (s == NULL)
		fail_msg("%s", e.text);
	free(text);
	return s;
}
