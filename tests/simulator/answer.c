#include <event2/buffer.h>
#include <event2/http.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "tests/simulator/exchange.h"

#define JSON_TYPE "application/json; charset=utf-8"

static const char garbage[] = "\xff\xfe{\"events\": [\x01\xc3\x28 <<<";

static void
answer_set(struct exchange *x, int status, const char *type, char *text)
{
	free(x->answer.text);
	x->answer.status = status;
	x->answer.type = type;
	x->answer.text = text;
	x->answer.len = text == NULL ? 0 : strlen(text);
}

void
answer_json(struct exchange *x, int status, json_t *body)
{
	char *text = json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);

	json_decref(body);
	answer_set(x, status, JSON_TYPE, text);
}

void
answer_text(struct exchange *x, int status, const char *type, const char *text)
{
	answer_set(x, status, type, xstrdup(text));
}

void
answer_empty(struct exchange *x, int status)
{
	answer_set(x, status, JSON_TYPE, NULL);
}

void
answer_error(
    struct exchange *x, int status, const char *reason, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	json_t *body = json_object();

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_object_set_new(body, "error", text_json(text, strlen(text)));
	if (reason != NULL)
		json_object_set_new(body, "reason", json_string(reason));
	answer_json(x, status, body);
}

void
answer_header(struct exchange *x, const char *name, const char *value)
{
	if (x->answer.headers == NULL)
		x->answer.headers = json_object();
	json_object_set_new(x->answer.headers, name, json_string(value));
}

void
answer_free(struct answer *answer)
{
	free(answer->text);
	json_decref(answer->headers);
}

static void
answer_set_body(struct exchange *x, json_t *body)
{
	if (json_is_string(body))
		answer_text(
		    x, x->effect.status, JSON_TYPE, json_string_value(body));
	else if (body != NULL)
		answer_json(x, x->effect.status, json_incref(body));
	else
		answer_empty(x, x->effect.status);
}

void
answer_replace(struct exchange *x)
{
	json_decref(x->answer.headers);
	x->answer.headers = json_incref(x->effect.headers);
	if (x->effect.mode == FAULT_GARBAGE)
		answer_text(x, HTTP_OK, JSON_TYPE, garbage);
	else
		answer_set_body(x, x->effect.body);
}

/* A fault may bring a Content-Type or Content-Length of its own. */
static void
headers_write(const struct exchange *x, struct evkeyvalq *out)
{
	const char *name;
	json_t *value;

	json_object_foreach (x->answer.headers, name, value) {
		(void)evhttp_add_header(out, name, json_string_value(value));
	}
	if (evhttp_find_header(out, "Content-Type") == NULL)
		(void)evhttp_add_header(out, "Content-Type", x->answer.type);
}

/* A body beyond any bound of the reader's, and still JSON. */
static void
answer_pad(struct exchange *x)
{
	size_t len = x->answer.len, pad = (size_t)x->effect.pad;
	char *text;

	if (pad == 0)
		return;
	text = xmalloc(len + pad);
	if (len > 0)
		memcpy(text, x->answer.text, len);
	memset(text + len, ' ', pad);
	free(x->answer.text);
	x->answer.text = text;
	x->answer.len = len + pad;
}

/* Promise the whole body, send half of it, and close. */
static size_t
answer_cut(const struct exchange *x, struct evkeyvalq *out)
{
	char length[24];

	if (!x->effect.half || x->answer.len == 0)
		return x->answer.len;
	(void)snprintf(length, sizeof(length), "%zu", x->answer.len);
	(void)evhttp_remove_header(out, "Content-Length");
	(void)evhttp_add_header(out, "Content-Length", length);
	(void)evhttp_add_header(out, "Connection", "close");
	return x->answer.len / 2;
}

void
answer_deliver(struct exchange *x)
{
	struct evkeyvalq *out = evhttp_request_get_output_headers(x->req);
	struct evbuffer *body = evbuffer_new();
	size_t len;

	answer_pad(x);
	headers_write(x, out);
	len = answer_cut(x, out);
	if (len > 0)
		(void)evbuffer_add(body, x->answer.text, len);
	evhttp_send_reply(x->req, x->answer.status, NULL, body);
	evbuffer_free(body);
	x->req = NULL;
}
