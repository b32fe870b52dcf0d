#include <string.h>

#include "mcpd/call.h"
#include "mcpd/post.h"
#include "mcpd/server.h"
#include "mcpd/stream.h"
#include "mcpd/tools.h"

void
server_init(struct server *s, struct event_base *base, unsigned int domains)
{
	*s = (struct server){.base = base, .domains = domains};
	TAILQ_INIT(&s->calls);
	tools_render(domains, &s->tools);
}

void
server_clear(struct server *s)
{
	if (s->stream != NULL)
		server_disconnect(s, s->stream);
	call_free_all(s);
	buffer_free(&s->tools);
}

void
server_connect(struct server *s, int in_fd, int out_fd)
{
	struct stream *before = s->stream;

	if (before != NULL) {
		stream_drain(before);
		server_disconnect(s, before);
	}
	s->stream = stream_new(s, in_fd, out_fd);
}

void
server_disconnect(struct server *s, struct stream *stream)
{
	struct call *call, *next;

	if (s->stream_ends != NULL)
		s->stream_ends(s, stream);
	stream_end(stream);
	for (call = TAILQ_FIRST(&s->calls); call != NULL; call = next) {
		next = TAILQ_NEXT(call, entry);
		if (call->stream == stream)
			call_abandon(call);
	}
	if (s->stream == stream)
		s->stream = NULL;
	stream_free(stream);
	server_check_idle(s);
}

void
server_post_settled(struct server *s, int64_t intent_id)
{
	struct call *call, *next;

	for (call = TAILQ_FIRST(&s->calls); call != NULL; call = next) {
		next = TAILQ_NEXT(call, entry);
		post_settled(call, intent_id);
	}
}

void
server_linked(struct server *s)
{
	s->reach = SERVER_LINKED;
	call_ask_kept(s);
	server_post_settled(s, 0); /* what settled meanwhile nobody said */
}

void
server_away(struct server *s)
{
	s->reach = SERVER_AWAY;
	call_refuse_asking(s);
}

void
server_when_idle(struct server *s, void (*idle)(void *arg), void *arg)
{
	s->idle = idle;
	s->idle_arg = arg;
	server_check_idle(s);
}

void
server_check_idle(struct server *s)
{
	if (s->idle != NULL && s->stream == NULL && s->call_count == 0)
		s->idle(s->idle_arg);
}
