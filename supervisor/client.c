#include <sys/socket.h>

#include <errno.h>
#include <event2/buffer.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/json.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/client.h"

#define TEXT_MAX 512

static struct evbuffer *
client_output(const struct client *client)
{
	return bufferevent_get_output(client->stream);
}

/* The last words are written, then it is closed. */
static void
client_leave(struct client *client)
{
	client->leaves = true;
	client->follows = false;
	(void)bufferevent_disable(client->stream, EV_READ);
}

/* ---- what goes out ------------------------------------------------------- */

/* The answer is complete: the next request may be read. */
static void
client_answered(struct client *client)
{
	if (!client->leaves)
		(void)bufferevent_enable(client->stream, EV_READ);
}

void
client_waits(struct client *client)
{
	(void)bufferevent_disable(client->stream, EV_READ);
}

void
client_reply(struct client *client, const char *data, size_t len)
{
	struct evbuffer *out = client_output(client);

	(void)evbuffer_add_printf(out, "{\"ok\":true,\"data\":");
	(void)evbuffer_add(out, data, len);
	(void)evbuffer_add(out, "}\n", 2);
	client_answered(client);
}

bool
client_is_quiet(const struct client *client)
{
	return !client->follows &&
	    evbuffer_get_length(client_output(client)) == 0;
}

/* At once, past the stream: it knows of bytes only. */
void
client_reply_fd(struct client *client, const char *data, size_t len, int fd)
{
	int socket = (int)bufferevent_getfd(client->stream);
	struct buffer b = {0};
	bool is_sent;

	buffer_add_text(&b, "{\"ok\":true,\"data\":");
	buffer_add(&b, data, len);
	buffer_add_text(&b, "}\n");
	is_sent = client_is_quiet(client) &&
	    descriptors_send(socket, b.bytes, b.len, &fd, 1, MSG_DONTWAIT) ==
		(ssize_t)b.len;
	(void)close(fd);
	buffer_free(&b);
	if (is_sent)
		client_answered(client);
	else
		client_free(client);
}

void
client_refuse(struct client *client, const char *word, const char *fmt, ...)
{
	struct buffer b = {0};
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buffer_printf(&b, "{\"ok\":false,\"error\":\"%s\",\"text\":", word);
	json_write_string(&b, text, strlen(text));
	buffer_add_text(&b, "}\n");
	(void)evbuffer_add(client_output(client), b.bytes, b.len);
	buffer_free(&b);
	client_answered(client);
}

/* A follower that does not read is dropped: nothing here waits for it. */
void
client_publish(struct client *client, const char *line)
{
	struct evbuffer *out = client_output(client);
	size_t len = strlen(line);

	if (!client->follows)
		return;
	if (evbuffer_get_length(out) + len + 1 > CONTROL_FOLLOWER_MAX) {
		log_warnx("control socket: a follower of uid %ld is too slow",
		    (long)client->uid);
		client_free(client);
		return;
	}
	(void)evbuffer_add(out, line, len);
	(void)evbuffer_add(out, "\n", 1);
}

/* ---- what comes in ------------------------------------------------------- */

/* One request at a time, and none while its answers pile up. */
static bool
client_may_ask(const struct client *client)
{
	return (bufferevent_get_enabled(client->stream) & EV_READ) != 0 &&
	    evbuffer_get_length(client_output(client)) < CONTROL_FOLLOWER_MAX;
}

static void
client_on_read(struct bufferevent *stream, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(stream);
	struct client *client = arg;
	size_t len;
	char *line;

	while (client_may_ask(client) &&
	    (line = evbuffer_readln(in, &len, EVBUFFER_EOL_LF)) != NULL) {
		command_run(client, line, len);
		free(line);
	}
	if (client_may_ask(client) &&
	    evbuffer_get_length(in) >= CONTROL_LINE_MAX) {
		client_refuse(client, "usage", "a line is at most %d bytes",
		    CONTROL_LINE_MAX);
		client_leave(client);
	}
}

static void
client_on_written(struct bufferevent *stream, void *arg)
{
	struct client *client = arg;

	(void)stream;
	if (client->leaves)
		client_free(client);
	else
		client_on_read(stream, client); /* lines that waited */
}

/*
 * The end of its requests is not the end of the answers: one that has shut
 * its writing side down still gets what it asked for. Not so a follower: it
 * would only be found gone at the next line.
 */
static void
client_on_event(struct bufferevent *stream, short what, void *arg)
{
	struct client *client = arg;
	bool waits = client->query != 0 || client->restarts != NULL;

	(void)stream;
	if ((what & BEV_EVENT_EOF) == 0 || (what & BEV_EVENT_WRITING) != 0 ||
	    client->follows || client->will_follow ||
	    (!waits && evbuffer_get_length(client_output(client)) == 0))
		client_free(client);
	else
		client_leave(client);
}

struct client *
client_new(struct supervisor *sv, struct client_list *list, int fd, uid_t uid,
    enum control_right right)
{
	struct client *client = xcalloc(1, sizeof(*client));

	client->sv = sv;
	client->list = list;
	client->uid = uid;
	client->right = right;
	client->stream =
	    bufferevent_socket_new(sv->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (client->stream == NULL)
		fatalx("control socket: no event");
	bufferevent_setcb(client->stream, client_on_read, client_on_written,
	    client_on_event, client);
	bufferevent_setwatermark(
	    client->stream, EV_READ, 0, CONTROL_LINE_MAX + 1);
	(void)evbuffer_add_printf(client_output(client),
	    "{\"connectd\":%d,\"version\":\"" CONNECTD_VERSION "\"}\n",
	    CONTROL_VERSION);
	(void)bufferevent_enable(client->stream, EV_READ | EV_WRITE);
	TAILQ_INSERT_TAIL(list, client, entry);
	return client;
}

void
client_free(struct client *client)
{
	command_forget(client);
	TAILQ_REMOVE(client->list, client, entry);
	bufferevent_free(client->stream);
	free(client);
}
