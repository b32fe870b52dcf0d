/*
 * Hostile bytes on a link, for every receiving role: the first byte says who
 * receives, the second who sends, the third how many descriptors come with
 * the rest. Whatever comes, the receiver hands out only messages that this
 * sender may send, within their bounds, or ends the link and says why.
 */
#include <sys/socket.h>

#include <string.h>
#include <unistd.h>

#include "common/link.h"
#include "common/log.h"
#include "tests/fuzz/fuzz.h"

#define TURNS 16
#define FDS_MOST 10

struct seen {
	enum role_id self, peer;
	bool over;
};

static void
on_message(struct link *link, struct msg *m, void *arg)
{
	const struct seen *s = arg;
	const struct msg_info *info = msg_info(m->type);
	struct msg again;
	struct frame f;
	struct error e;

	(void)link;
	MUST(!s->over);
	MUST(msg_permitted(m->type, s->peer, s->self));
	MUST(info != NULL && m->size <= FRAME_MAX);
	/* What was accepted is within its bounds: it can be sent on. */
	again = *m;
	MUST(frame_encode(&again, &f, &e) == 0);
	frame_free(&f);
	/* Its descriptors went with the copy. */
	memcpy(&m->request, &again.request,
	    offsetof(struct msg, size) - offsetof(struct msg, request));
	msg_free(m);
}

static void
on_over(struct link *link, enum link_over why, const char *text, void *arg)
{
	struct seen *s = arg;

	(void)link;
	(void)why;
	MUST(!s->over && *text != '\0');
	s->over = true;
}

static void
send_with_descriptors(int fd, const uint8_t *data, size_t size, size_t count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * FDS_MOST)];
	} control = {.bytes = {0}};
	struct iovec iov = {(void *)(uintptr_t)data, size};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cmsg;
	int fds[FDS_MOST], ends[2];
	size_t i;

	MUST(pipe(ends) == 0);
	for (i = 0; i < count; i++)
		fds[i] = ends[i % 2];
	if (count > 0) {
		mh.msg_control = control.bytes;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		cmsg = CMSG_FIRSTHDR(&mh);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * count);
	}
	(void)sendmsg(fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void
silent(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct link_ops ops = {on_message, on_over};
	static struct event_base *base;
	struct seen seen = {.over = false};
	struct link *link;
	int ends[2], i;

	if (size < 4)
		return 0;
	if (base == NULL) {
		log_set_sink(silent);
		base = event_base_new();
	}
	seen.self = data[0] % ROLE_COUNT;
	seen.peer = data[1] % ROLE_COUNT;
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	link = link_new(base, ends[0], seen.self, seen.peer, &ops, &seen);
	send_with_descriptors(ends[1], data + 3, size - 3, data[2] % FDS_MOST);
	(void)shutdown(ends[1], SHUT_WR);
	for (i = 0; i < TURNS && !seen.over; i++)
		(void)event_base_loop(base, EVLOOP_NONBLOCK);
	MUST(seen.over);
	link_free(link);
	(void)close(ends[1]);
	return 0;
}
