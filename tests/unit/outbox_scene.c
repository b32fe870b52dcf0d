/* What outbox_scene.h says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/outbox_scene.h"

char apart_token[TOKEN_LEN + 1];

void
admit_apart(struct fixture *f, int64_t id)
{
	char key[32];

	(void)snprintf(key, sizeof(key), "k%d", (int)id);
	(void)record_event(f, id);
	assert_string_equal("admitted", admit_event(f, id, key));
}

void
launch_apart(struct fixture *f)
{
	admit_apart(f, 101);
	(void)snprintf(
	    apart_token, sizeof(apart_token), "%s", launch(f, 101, ATT_1));
}

struct msg *
post_text(
    struct fixture *f, const char *kind, const char *hash, const char *text)
{
	struct msg m = {.type = MSG_POST};

	m.post = (struct msg_post){.token = apart_token,
	    .event_id = 101,
	    .kind = kind,
	    .hash = hash,
	    .comment = {text, strlen(text)},
	    .line = {text, strlen(text)}};
	return fixture_ask(f, &m, ROLE_MCPD, ATT_1);
}

struct msg *
tell_receipt(struct fixture *f, int64_t intent, const char *nonce, int64_t id)
{
	struct msg m = {.type = MSG_RECEIPT};

	m.receipt = (struct msg_receipt){intent, nonce, id};
	return fixture_ask(f, &m, ROLE_OUTBOX, "");
}

struct msg *
tell_refused(struct fixture *f, int64_t intent, const char *nonce)
{
	struct msg m = {.type = MSG_REFUSED};

	m.refused = (struct msg_refused){intent, nonce, "403"};
	return fixture_ask(f, &m, ROLE_OUTBOX, "");
}
