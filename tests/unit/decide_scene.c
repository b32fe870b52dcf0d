#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "intake/admission.h"
#include "tests/unit/decide_scene.h"

#define COUNT(t) (sizeof(t) / sizeof((t)[0]))

struct stage *
scene_new(const char *type, int64_t creator)
{
	struct stage *s = stage_new();

	s->undecided[0] = (struct msg_undecided){.found = true,
	    .event_id = EVENT,
	    .revision = 3,
	    .event_type = type,
	    .bucket_id = STAGE_PROJECT,
	    .creator_id = creator,
	    .recording_id = 5,
	    .actor_type = "",
	    .seen_at = "2026-01-05T09:00:00.000000000Z"};
	s->undecided_count = 1;
	return s;
}

void
scene_configure(struct stage *s, int64_t timeout_ms)
{
	policy_unref(s->in.policy);
	s->in.policy = policy_new(s->config);
	s->in.api.account_id = 999;
	s->in.api.timeout_ms = timeout_ms;
	admission_configure(s->in.admission);
}

void
scene_decide(struct stage *s)
{
	scene_configure(s, 2000);
	stage_await(s, "VERDICT");
}

void
scene_expect(struct stage *s, const char *text)
{
	static const char *const about[] = {
	    "token = waiting\n", "TOKEN 0\n", "token = held\n"};
	char *at;
	size_t i;

	for (i = 0; i < COUNT(about); i++) {
		at = strstr(s->journal.bytes, about[i]);
		if (at != NULL)
			memmove(at, at + strlen(about[i]),
			    strlen(at + strlen(about[i])) + 1);
	}
	stage_expect(s, text);
}
