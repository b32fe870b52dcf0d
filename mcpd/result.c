#include <stdlib.h>

#include "common/log.h"
#include "mcpd/answer.h"
#include "mcpd/fit.h"
#include "mcpd/refusal.h"
#include "mcpd/result.h"

/* What a response of ROOM bytes leaves to its text, with the quotes. */
static size_t
text_room(const struct result *r, size_t room)
{
	const struct json_span empty = {"", 0};
	struct buffer response = {0};
	size_t taken;

	answer_tool(&response, &r->id, r->is_modern, &empty, r->is_error);
	taken = response.len - 2;
	buffer_free(&response);
	return room - taken;
}

static bool
result_fits(struct buffer *out, const struct result *r, size_t room)
{
	struct json_span span;
	char *text;

	text = r->is_whole ? fit_whole(r->json, text_room(r, room), &span.len)
			   : fit_text(r->json, text_room(r, room), &span.len);
	if (text == NULL)
		return false;
	span.bytes = text;
	answer_tool(out, &r->id, r->is_modern, &span, r->is_error);
	free(text);
	return true;
}

void
result_write(struct buffer *out, const struct result *r, size_t room)
{
	struct result refusal = *r;

	if (result_fits(out, r, room))
		return;
	refusal.is_error = true;
	refusal.json = refusal_json("unavailable",
	    "The result is too long for its place. Call again, on a line of "
	    "its own.");
	if (!result_fits(out, &refusal, room))
		fatalx("no room for a refusal");
	json_decref(refusal.json);
}
