/* The encoding of messages: every row, both ways, and hostile frames. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/frame.h"
#include "common/xmalloc.h"

static char filler[2 * 1024 * 1024];
static int64_t id_filler[4096];

/* A descriptor of the class a field wants. */
static int fd_of(enum fd_class class)
{
	int fds[2];

	if (class == FD_SOCKET) {
		assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
		close(fds[1]);
		return fds[0];
	}
	if (class == FD_PIDFD)
		return memfd_create("pidfd", MFD_CLOEXEC);
	assert_int_equal(0, pipe(fds));
	close(class == FD_PIPE_READ ? fds[1] : fds[0]);
	return class == FD_PIPE_READ ? fds[0] : fds[1];
}

/* Fill every field at its upper (or lower) bound. */
static void
fill(struct msg *m, const struct msg_info *info, bool most, size_t large_most)
{
	size_t i;

	for (i = 0; i < info->field_count; i++) {
		const struct msg_field *f = &info->fields[i];
		void *at = (char *)m + f->offset;
		int64_t bound = most ? f->most : f->least;
		size_t len =
		    (size_t)bound > large_most ? large_most : (size_t)bound;

		switch (f->kind) {
		case FIELD_I64:
			memcpy(at, &bound, sizeof(bound));
			break;
		case FIELD_OPT:
			*(struct opt *)at =
			    (struct opt){most, most ? bound : 0};
			break;
		case FIELD_BOOL:
			*(bool *)at = most;
			break;
		case FIELD_STR:
			*(const char **)at =
			    filler + sizeof(filler) - 1 - (size_t)bound;
			break;
		case FIELD_LARGE:
			*(struct blob *)at = (struct blob){filler, len};
			break;
		case FIELD_IDS:
			*(struct ids *)at =
			    (struct ids){id_filler, (size_t)bound};
			break;
		case FIELD_FD:
			*(int *)at = fd_of(f->fd_class);
			break;
		}
	}
}

static void
compare(const struct msg *a, const struct msg *b, const struct msg_info *info)
{
	size_t i;

	for (i = 0; i < info->field_count; i++) {
		const struct msg_field *f = &info->fields[i];
		const void *x = (const char *)a + f->offset;
		const void *y = (const char *)b + f->offset;
		const struct blob *bx = x, *by = y;
		const struct ids *ix = x, *iy = y;

		switch (f->kind) {
		case FIELD_I64:
			assert_memory_equal(x, y, sizeof(int64_t));
			break;
		case FIELD_OPT:
			assert_int_equal(((const struct opt *)x)->has,
			    ((const struct opt *)y)->has);
			assert_true(((const struct opt *)x)->value ==
			    ((const struct opt *)y)->value);
			break;
		case FIELD_BOOL:
			assert_int_equal(*(const bool *)x, *(const bool *)y);
			break;
		case FIELD_STR:
			assert_string_equal(
			    *(const char *const *)x, *(const char *const *)y);
			break;
		case FIELD_LARGE:
			assert_int_equal(bx->len, by->len);
			if (bx->len != 0)
				assert_memory_equal(
				    bx->bytes, by->bytes, bx->len);
			break;
		case FIELD_IDS:
			assert_int_equal(ix->count, iy->count);
			if (ix->count != 0)
				assert_memory_equal(ix->list, iy->list,
				    ix->count * sizeof(int64_t));
			break;
		case FIELD_FD:
			assert_int_equal(-1, *(const int *)x);
			assert_true(*(const int *)y >= 0);
			break;
		}
	}
}

static void
round_trip(int type, bool most, size_t large_most)
{
	const struct msg_info *info = msg_info(type);
	struct msg m = {.type = (enum msg_type)type, .request = 77}, *back;
	struct frame f;
	struct error e = {0, ""};

	fill(&m, info, most, large_most);
	if (frame_encode(&m, &f, &e) == -1)
		fail_msg("%s", e.text);
	assert_true(f.len <= FRAME_MAX);
	back = frame_decode(f.bytes, f.len, f.fds, f.fd_count, &e);
	f.fd_count = 0;
	if (back == NULL)
		fail_msg("%s", e.text);
	assert_int_equal(type, back->type);
	assert_int_equal(77, back->request);
	compare(&m, back, info);
	msg_free(back);
	frame_free(&f);
}

/* Every message fits one frame at its bounds, and comes back as it went. */
static void
every_message_round_trips(void **state)
{
	int type;

	for (type = MSG_NONE + 1; type < MSG_COUNT; type++) {
		round_trip(type, false, SIZE_MAX);
		round_trip(type, true, LARGE_INLINE_MAX);
		round_trip(type, true, sizeof(filler) - 1);
	}
	print_message("%d messages\n", MSG_COUNT - 1);
}

/* Outside its bounds nothing is encoded, and descriptors are not leaked. */
static void
bounds_hold_when_sending(void **state)
{
	struct msg m = {.type = MSG_SPAWN_WORKER};
	struct msg token = {.type = MSG_SPAWN_MCPD};
	struct frame f;
	struct error e;
	int fd = fd_of(FD_PIPE_READ);

	m.spawn_worker.attempt = "att_short";
	m.spawn_worker.project_id = 1;
	m.spawn_worker.generation = 1;
	assert_int_equal(-1, frame_encode(&m, &f, &e));
	assert_string_equal("SPAWN_WORKER: attempt is out of bounds", e.text);
	token.spawn_mcpd.attempt = "att_short";
	token.spawn_mcpd.token = fd;
	assert_int_equal(-1, frame_encode(&token, &f, &e));
	assert_int_equal(-1, token.spawn_mcpd.token);
	assert_int_equal(-1, fcntl(fd, F_GETFD));
}

static void
encode_ping(struct frame *f)
{
	struct msg m = {.type = MSG_PING};
	struct error e;

	m.ping.nonce = 5;
	assert_int_equal(0, frame_encode(&m, f, &e));
}

static void
expect_refused(const unsigned char *bytes, size_t len, const int *fds,
    size_t fd_count, const char *text)
{
	struct error e = {0, ""};

	assert_null(frame_decode(bytes, len, fds, fd_count, &e));
	assert_string_equal(text, e.text);
}

/* Hostile frames: each is refused with the message and the field named. */
static void
hostile_frames_are_refused(void **state)
{
	struct frame f;
	unsigned char longer[64];
	int fd;

	encode_ping(&f);
	expect_refused(f.bytes, 3, NULL, 0, "?: a bad header");
	expect_refused(f.bytes, f.len - 1, NULL, 0, "PING: a bad header");
	memcpy(longer, f.bytes, f.len);
	longer[4] = 9;
	longer[f.len] = 0;
	expect_refused(
	    longer, f.len + 1, NULL, 0, "PING: the whole has bytes left over");
	longer[4] = 7;
	expect_refused(longer, f.len - 1, NULL, 0, "PING: nonce ends early");
	longer[4] = 8;
	longer[f.len - 1] = 0x80;
	expect_refused(longer, f.len, NULL, 0, "PING: nonce is out of bounds");
	memcpy(longer, f.bytes, f.len);
	longer[2] = 1;
	fd = fd_of(FD_SOCKET);
	expect_refused(
	    longer, f.len, &fd, 1, "PING: the whole has a surplus descriptor");
	assert_int_equal(-1, fcntl(fd, F_GETFD));
	longer[0] = longer[1] = 0xff;
	expect_refused(longer, f.len, NULL, 0, "?: a bad header");
	frame_free(&f);
}

static void
encode_link(struct frame *f)
{
	struct msg m = {.type = MSG_LINK};
	struct error e;

	m.link.role = ROLE_LEDGER;
	m.link.generation = 1;
	m.link.attempt = "";
	m.link.end = fd_of(FD_SOCKET);
	assert_int_equal(0, frame_encode(&m, f, &e));
}

static void
descriptors_are_checked(void **state)
{
	struct frame f;
	int fd = fd_of(FD_PIPE_READ);

	encode_link(&f);
	f.bytes[2] = 0;
	expect_refused(
	    f.bytes, f.len, NULL, 0, "LINK: end misses its descriptor");
	f.bytes[2] = 1;
	expect_refused(
	    f.bytes, f.len, &fd, 1, "LINK: end is another kind of descriptor");
	frame_free(&f);
}

/* A memory file that its sender could still change is refused. */
static void
unsealed_memory_is_refused(void **state)
{
	struct msg m = {.type = MSG_THREAD};
	struct frame f;
	struct error e;
	int fd;

	m.thread.json = (struct blob){filler, 4000};
	assert_int_equal(0, frame_encode(&m, &f, &e));
	assert_int_equal(1, f.fd_count);
	fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(4000, write(fd, filler, 4000));
	expect_refused(f.bytes, f.len, &fd, 1,
	    "THREAD: json is not a sealed memory file of that size");
	fd = f.fds[0];
	f.fd_count = 0;
	f.bytes[FRAME_HEADER_SIZE + 1] -= 1; /* shorter than it is */
	expect_refused(f.bytes, f.len, &fd, 1,
	    "THREAD: json is not a sealed memory file of that size");
	frame_free(&f);
}

static void
a_nul_inside_a_string_is_refused(void **state)
{
	struct msg m = {.type = MSG_LINE};
	struct frame f;
	struct error e;

	m.line.text = "{\"a\":1}";
	assert_int_equal(0, frame_encode(&m, &f, &e));
	f.bytes[FRAME_HEADER_SIZE + 4] = '\0';
	expect_refused(f.bytes, f.len, NULL, 0, "LINE: text holds a NUL byte");
	frame_free(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_message_round_trips),
	    cmocka_unit_test(bounds_hold_when_sending),
	    cmocka_unit_test(hostile_frames_are_refused),
	    cmocka_unit_test(descriptors_are_checked),
	    cmocka_unit_test(unsealed_memory_is_refused),
	    cmocka_unit_test(a_nul_inside_a_string_is_refused),
	};
	size_t i;

	memset(filler, 'x', sizeof(filler) - 1);
	for (i = 0; i < sizeof(id_filler) / sizeof(id_filler[0]); i++)
		id_filler[i] = (int64_t)i + 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
