/* Frames over a real socketpair: order, descriptors, the end of a peer. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/descriptors.h"
#include "common/link.h"
#include "common/xmalloc.h"

struct side {
	struct link *link;
	struct msg *got[4096];
	size_t count;
	bool over;
	enum link_over why;
	char text[256];
	size_t pause_at; /* pause after so many; 0: never */
};

struct pair {
	struct event_base *base;
	struct side a, b; /* a: intake, b: ledger */
	int raw;          /* the other end when only one side is a link */
};

static void
on_message(struct link *link, struct msg *m, void *arg)
{
	struct side *s = arg;

	assert_true(s->count < 4096);
	s->got[s->count++] = m;
	if (s->count == s->pause_at)
		link_pause(link);
}

static void
on_over(struct link *link, enum link_over why, const char *text, void *arg)
{
	struct side *s = arg;

	assert_false(s->over);
	s->over = true;
	s->why = why;
	(void)snprintf(s->text, sizeof(s->text), "%s", text);
}

static const struct link_ops ops = {on_message, on_over};

static struct pair *
pair_new(bool only_b)
{
	struct pair *p = xcalloc(1, sizeof(*p));
	int fds[2];

	p->base = event_base_new();
	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	p->b.link =
	    link_new(p->base, fds[1], ROLE_LEDGER, ROLE_INTAKE, &ops, &p->b);
	p->raw = -1;
	if (only_b)
		p->raw = fds[0];
	else
		p->a.link = link_new(
		    p->base, fds[0], ROLE_INTAKE, ROLE_LEDGER, &ops, &p->a);
	return p;
}

static void
side_free(struct side *s)
{
	size_t i;

	link_free(s->link);
	for (i = 0; i < s->count; i++)
		msg_free(s->got[i]);
}

static void
pair_free(struct pair *p)
{
	side_free(&p->a);
	side_free(&p->b);
	if (p->raw != -1)
		close(p->raw);
	event_base_free(p->base);
	free(p);
}

/* Turn the loop until nothing more happens. */
static void
turn(struct pair *p)
{
	int i;

	for (i = 0; i < 200; i++)
		event_base_loop(p->base, EVLOOP_NONBLOCK);
}

static struct msg
a_record(int64_t id)
{
	struct msg m = {.type = MSG_RECORD, .request = (uint64_t)id};

	m.record = (struct msg_record){.event_id = id,
	    .lane = "poll",
	    .event_type = "comment.created",
	    .kind = "comment_created",
	    .action = "created",
	    .bucket_id = 1,
	    .creator_id = 2,
	    .recording_id = 3,
	    .actor_type = "",
	    .created_at = "2026-01-05T09:00:00.000000000Z"};
	return m;
}

static void
frames_arrive_whole_and_in_order(void **state)
{
	struct pair *p = pair_new(false);
	struct msg m;
	int64_t i;

	for (i = 1; i <= 2000; i++) {
		m = a_record(i);
		link_send(p->a.link, &m);
	}
	turn(p);
	assert_int_equal(2000, p->b.count);
	for (i = 1; i <= 2000; i++)
		assert_int_equal(i, p->b.got[i - 1]->record.event_id);
	assert_int_equal(0, link_queued(p->a.link));
	pair_free(p);
}

/* A long field crosses as a memory file between two short frames. */
static void
long_fields_keep_their_place(void **state)
{
	struct pair *p = pair_new(false);
	char *details = xmalloc(300000);
	struct msg m;
	int64_t i;

	memset(details, '1', 300000);
	for (i = 1; i <= 9; i++) {
		m = a_record(i);
		if (i % 3 == 0)
			m.record.details = (struct blob){details, 300000};
		link_send(p->a.link, &m);
	}
	turn(p);
	assert_int_equal(9, p->b.count);
	for (i = 1; i <= 9; i++)
		assert_int_equal(i % 3 == 0 ? 300000 : 0,
		    p->b.got[i - 1]->record.details.len);
	free(details);
	pair_free(p);
}

/* Bytes one by one are the same frames. */
static void
split_frames_are_put_together(void **state)
{
	struct pair *p = pair_new(true);
	struct msg m = a_record(7);
	struct frame f;
	struct error e;
	size_t i;

	assert_int_equal(0, frame_encode(&m, &f, &e));
	for (i = 0; i < f.len; i++) {
		assert_int_equal(0, p->b.count);
		assert_int_equal(1, write(p->raw, f.bytes + i, 1));
		turn(p);
	}
	assert_int_equal(1, p->b.count);
	frame_free(&f);
	pair_free(p);
}

static void
send_raw(struct pair *p, struct msg *m)
{
	struct frame f;
	struct error e;

	assert_int_equal(0, frame_encode(m, &f, &e));
	assert_int_equal((ssize_t)f.len, write(p->raw, f.bytes, f.len));
	frame_free(&f);
}

/* Of a dead peer facts and notices still count, its questions do not. */
static void
the_dead_only_report(void **state)
{
	struct pair *p = pair_new(true);
	struct msg m, question = {.type = MSG_NEXT_UNDECIDED, .request = 2};
	struct msg hello = {.type = MSG_HELLO};
	struct msg pong = {.type = MSG_PONG, .request = 4};

	m = a_record(1);
	send_raw(p, &m);
	send_raw(p, &question);
	m = a_record(3);
	send_raw(p, &m);
	send_raw(p, &pong);
	hello.hello.protocol = hello.hello.schema = 1;
	hello.hello.build = "b";
	send_raw(p, &hello);
	close(p->raw);
	p->raw = -1;
	turn(p);
	assert_int_equal(3, p->b.count);
	assert_int_equal(MSG_RECORD, p->b.got[0]->type);
	assert_int_equal(3, p->b.got[1]->record.event_id);
	assert_int_equal(MSG_HELLO, p->b.got[2]->type);
	assert_true(p->b.over);
	assert_int_equal(LINK_EOF, p->b.why);
	pair_free(p);
}

/* What a peer may not send ends the link, named without its bytes. */
static void
what_is_not_its_to_send_breaks(void **state)
{
	struct pair *p = pair_new(true);
	struct msg m = {.type = MSG_NEXT_LIVE, .request = 1};

	send_raw(p, &m);
	turn(p);
	assert_true(p->b.over);
	assert_int_equal(LINK_BROKEN, p->b.why);
	assert_string_equal("NEXT_LIVE: not its to send", p->b.text);
	assert_int_equal(0, p->b.count);
	pair_free(p);
}

static void
a_length_beyond_the_frame_breaks(void **state)
{
	struct pair *p = pair_new(true);
	unsigned char bytes[FRAME_HEADER_SIZE] = {
	    MSG_RECORD & 0xff, MSG_RECORD >> 8, 0, 0, 0xff, 0xff, 0xff, 0x7f};

	assert_int_equal(sizeof(bytes), write(p->raw, bytes, sizeof(bytes)));
	turn(p);
	assert_string_equal("RECORD: frame too long", p->b.text);
	pair_free(p);
}

/* Descriptors that no frame claims end the link and are closed. */
static void
surplus_descriptors_break(void **state)
{
	struct pair *p = pair_new(true);
	struct msg m = a_record(1);
	struct frame f;
	struct error e;

	assert_int_equal(0, frame_encode(&m, &f, &e));
	assert_int_equal((ssize_t)f.len,
	    descriptors_send(p->raw, f.bytes, f.len, &p->raw, 1, 0));
	turn(p);
	assert_int_equal(LINK_BROKEN, p->b.why);
	assert_string_equal("a surplus descriptor", p->b.text);
	frame_free(&f);
	pair_free(p);
}

/* Paused, frames wait; resumed, they come, the end after them. */
static void
pausing_loses_nothing(void **state)
{
	struct pair *p = pair_new(true);
	struct msg m;
	int64_t i;

	p->b.pause_at = 3;
	for (i = 1; i <= 10; i++) {
		m = a_record(i);
		send_raw(p, &m);
	}
	turn(p);
	assert_int_equal(3, p->b.count);
	p->b.pause_at = 7;
	link_resume(p->b.link); /* what was read already comes by itself */
	turn(p);
	assert_int_equal(7, p->b.count);
	close(p->raw);
	p->raw = -1;
	turn(p);
	assert_false(p->b.over);
	link_resume(p->b.link);
	turn(p);
	assert_int_equal(10, p->b.count);
	assert_true(p->b.over);
	pair_free(p);
}

/* A peer that does not read is not read: memory stays bounded. */
static void
a_deaf_peer_is_not_read(void **state)
{
	struct pair *p = pair_new(true);
	struct msg m, reply = {.type = MSG_RECORDED};
	size_t before;
	int64_t i;

	while (link_queued(p->b.link) <= 300 * 1024) {
		link_send(p->b.link, &reply);
		link_flush(p->b.link);
	}
	turn(p);
	before = p->b.count;
	for (i = 1; i <= 5; i++) {
		m = a_record(i);
		send_raw(p, &m);
	}
	turn(p);
	assert_int_equal(before, p->b.count);
	pair_free(p);
}

/* One that died with much unread is still found dead. */
static void
a_dead_peer_with_a_long_queue_is_noticed(void **state)
{
	struct pair *p = pair_new(true);
	struct msg m = a_record(1), reply = {.type = MSG_RECORDED};

	while (link_queued(p->b.link) <= 300 * 1024) {
		link_send(p->b.link, &reply);
		link_flush(p->b.link);
	}
	send_raw(p, &m);
	close(p->raw);
	p->raw = -1;
	turn(p);
	assert_true(p->b.over);
	assert_int_equal(LINK_EOF, p->b.why);
	assert_int_equal(1, p->b.count);
	pair_free(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(frames_arrive_whole_and_in_order),
	    cmocka_unit_test(long_fields_keep_their_place),
	    cmocka_unit_test(split_frames_are_put_together),
	    cmocka_unit_test(the_dead_only_report),
	    cmocka_unit_test(what_is_not_its_to_send_breaks),
	    cmocka_unit_test(a_length_beyond_the_frame_breaks),
	    cmocka_unit_test(surplus_descriptors_break),
	    cmocka_unit_test(pausing_loses_nothing),
	    cmocka_unit_test(a_deaf_peer_is_not_read),
	    cmocka_unit_test(a_dead_peer_with_a_long_queue_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
