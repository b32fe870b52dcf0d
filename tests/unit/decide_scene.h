/*
 * One event to be decided, on intake's stage: what Basecamp answers is said by
 * stage_answer(), what must come of it by scene_expect().
 */
#ifndef TESTS_UNIT_DECIDE_SCENE_H
#define TESTS_UNIT_DECIDE_SCENE_H

#include "tests/unit/intake_stage.h"

#define EVENT 101
#define MEMBER 777

#define SGID                                                                   \
	"eyJfcmFpbHMiOnsiZGF0YSI6ImdpZDovL2JjMy9QZXJzb24vNTIwMDc0MTIiLCJwdXIi" \
	"OiJhdHRhY2hhYmxlIn19"
#define MENTION "<bc-attachment sgid=\\\"" SGID "\\\"></bc-attachment>"

/* A recording; MORE overrides nothing and goes last. */
#define RECORDING(id, creator, more)                                         \
	"{\"id\":" #id ",\"status\":\"active\",\"app_url\":\"https://x/" #id \
	"\",\"bucket\":{\"id\":48699913,\"name\":\"Connector\"},"            \
	"\"creator\":{\"id\":" #creator ",\"name\":\"Who\","                 \
	"\"personable_type\":\"User\"},\"updated_at\":\"2026-01-05\"" more "}"
#define ASKED "\"content\":\"" MENTION " please\""
#define COMMENT(creator, more)                        \
	RECORDING(5, creator,                         \
	    ",\"type\":\"Comment\",\"title\":\"Re\"," \
	    "\"parent\":{\"id\":4}," more)

#define NOTHING "key= reply=:0 route= class="
#define HERE " route=/srv/site class=web"
#define BY_BOSS " requester=26909558"

/* One event on an empty stage; it is not there yet for the ledger. */
struct stage *scene_new(const char *type, int64_t creator);
/* As intake_configured(), but for the feed. */
void scene_configure(struct stage *s, int64_t timeout_ms);
/* Until its verdict. */
void scene_decide(struct stage *s);
/* The journal without the lines about the token. */
void scene_expect(struct stage *s, const char *text);

#endif
