#include <sys/stat.h>

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/frame.h"
#include "common/spill.h"
#include "common/xmalloc.h"

/* ---- writing ---------------------------------------------------------- */

struct writer {
	unsigned char bytes[FRAME_MAX];
	size_t len;
	bool overflow;
	int fds[FRAME_FDS_MAX];
	size_t fd_count;
};

static void
put_bytes(struct writer *w, const void *bytes, size_t len)
{
	if (len > sizeof(w->bytes) - w->len) {
		w->overflow = true;
		return;
	}
	if (len != 0)
		memcpy(w->bytes + w->len, bytes, len);
	w->len += len;
}

static void
put_uint(struct writer *w, uint64_t value, size_t width)
{
	unsigned char out[8];
	size_t i;

	for (i = 0; i < width; i++)
		out[i] = (unsigned char)(value >> (8 * i));
	put_bytes(w, out, width);
}

static int
put_i64(struct writer *w, const struct msg_field *f, const void *at)
{
	int64_t value;

	memcpy(&value, at, sizeof(value));
	if (value < f->least || value > f->most)
		return -1;
	put_uint(w, (uint64_t)value, 8);
	return 0;
}

static int
put_opt(struct writer *w, const struct msg_field *f, const void *at)
{
	const struct opt *opt = at;

	if (opt->has && (opt->value < f->least || opt->value > f->most))
		return -1;
	put_uint(w, opt->has, 1);
	put_uint(w, opt->has ? (uint64_t)opt->value : 0, 8);
	return 0;
}

static int
put_bool(struct writer *w, const struct msg_field *f, const void *at)
{
	bool value;

	(void)f;
	memcpy(&value, at, sizeof(value));
	put_uint(w, value ? 1 : 0, 1);
	return 0;
}

static int
put_str(struct writer *w, const struct msg_field *f, const void *at)
{
	const char *text;
	size_t len;

	memcpy(&text, at, sizeof(text));
	if (text == NULL)
		text = "";
	len = strlen(text);
	if (len < (size_t)f->least || len > (size_t)f->most)
		return -1;
	put_uint(w, len, 2);
	put_bytes(w, text, len + 1);
	return 0;
}

/* Short ones inline; a longer one is a descriptor and its length. */
static int
put_large(struct writer *w, const struct msg_field *f, const void *at)
{
	const struct blob *blob = at;
	int fd;

	if (blob->len > (size_t)f->most)
		return -1;
	if (blob->len <= LARGE_INLINE_MAX) {
		put_uint(w, 0, 1);
		put_uint(w, blob->len, 4);
		put_bytes(w, blob->bytes, blob->len);
		return 0;
	}
	if (w->fd_count == FRAME_FDS_MAX ||
	    (fd = spill_make(blob->bytes, blob->len)) == -1)
		return -1;
	w->fds[w->fd_count++] = fd;
	put_uint(w, 1, 1);
	put_uint(w, blob->len, 4);
	return 0;
}

static int
put_ids(struct writer *w, const struct msg_field *f, const void *at)
{
	const struct ids *ids = at;
	size_t i;

	if (ids->count > (size_t)f->most)
		return -1;
	put_uint(w, ids->count, 2);
	for (i = 0; i < ids->count; i++) {
		if (ids->list[i] <= 0)
			return -1;
		put_uint(w, (uint64_t)ids->list[i], 8);
	}
	return 0;
}

/* Taken over: the message's field no longer owns it. */
static int
put_fd(struct writer *w, const struct msg_field *f, const void *at)
{
	int *fd = (int *)(uintptr_t)at;

	(void)f;
	if (*fd < 0 || w->fd_count == FRAME_FDS_MAX)
		return -1;
	w->fds[w->fd_count++] = *fd;
	*fd = -1;
	return 0;
}

typedef int (*put_field)(
    struct writer *, const struct msg_field *, const void *);

static const put_field put_fields[] = {
    [FIELD_I64] = put_i64,
    [FIELD_OPT] = put_opt,
    [FIELD_BOOL] = put_bool,
    [FIELD_STR] = put_str,
    [FIELD_LARGE] = put_large,
    [FIELD_IDS] = put_ids,
    [FIELD_FD] = put_fd,
};

static void
close_fds(const int *fds, size_t count)
{
	while (count > 0)
		(void)close(fds[--count]);
}

static void
header_write(
    unsigned char *out, const struct msg *m, size_t fd_count, size_t body_len)
{
	struct writer w = {.len = 0};

	put_uint(&w, (uint64_t)m->type, 2);
	put_uint(&w, fd_count, 2);
	put_uint(&w, body_len, 4);
	put_uint(&w, m->request, 8);
	memcpy(out, w.bytes, FRAME_HEADER_SIZE);
}

int
frame_encode(struct msg *m, struct frame *out, struct error *e)
{
	const struct msg_info *info = msg_info(m->type);
	const struct msg_field *f = NULL;
	struct writer *w;
	size_t i;
	int rc = -1;

	if (info == NULL)
		return error_set(e, "message %d is none", (int)m->type);
	w = xmalloc(sizeof(*w));
	w->len = FRAME_HEADER_SIZE;
	w->overflow = false;
	w->fd_count = 0;
	for (i = 0; i < info->field_count; i++) {
		f = &info->fields[i];
		if (put_fields[f->kind](w, f, (char *)m + f->offset) == -1)
			goto out;
	}
	if (w->overflow)
		goto out;
	header_write(w->bytes, m, w->fd_count, w->len - FRAME_HEADER_SIZE);
	out->bytes = xmemdup(w->bytes, w->len);
	out->len = w->len;
	out->fd_count = w->fd_count;
	memcpy(out->fds, w->fds, sizeof(w->fds));
	rc = 0;
out:
	msg_close(m);
	if (rc == -1) {
		close_fds(w->fds, w->fd_count);
		(void)error_set(e, "%s: %s is out of bounds", info->name,
		    w->overflow ? "the whole" : f->name);
	}
	explicit_bzero(w->bytes, w->len); /* a secret may be among them */
	free(w);
	return rc;
}

void
frame_free(struct frame *f)
{
	xfree_wiped(f->bytes);
	close_fds(f->fds, f->fd_count);
	*f = (struct frame){.bytes = NULL};
}

int
frame_dup(const struct frame *f, struct frame *out)
{
	size_t i;

	*out = (struct frame){.bytes = NULL};
	for (i = 0; i < f->fd_count; i++) {
		out->fds[i] = fcntl(f->fds[i], F_DUPFD_CLOEXEC, 4);
		if (out->fds[i] == -1) {
			close_fds(out->fds, i);
			return -1;
		}
	}
	out->fd_count = f->fd_count;
	out->bytes = xmemdup(f->bytes, f->len);
	out->len = f->len;
	return 0;
}

/* ---- reading ---------------------------------------------------------- */

/* A cursor that latches failure: one test after the last field. */
struct reader {
	const unsigned char *at;
	size_t left;
	const char *wrong; /* what is, NULL while nothing is */
	int fds[FRAME_FDS_MAX];
	size_t fd_count, fd_next;
	struct msg *m;
	size_t stored;
};

static const void *
get_bytes(struct reader *r, size_t len)
{
	const void *at = r->at;

	if (r->wrong != NULL)
		return NULL;
	if (len > r->left) {
		r->wrong = "ends early";
		return NULL;
	}
	r->at += len;
	r->left -= len;
	return at;
}

static uint64_t
get_uint(struct reader *r, size_t width)
{
	const unsigned char *bytes = get_bytes(r, width);
	uint64_t value = 0;

	if (bytes == NULL)
		return 0;
	while (width-- > 0)
		value = value << 8 | bytes[width];
	return value;
}

/* The message owns P from here on. */
static void
store(struct reader *r, void *p)
{
	assert(r->stored < MSG_STORAGE_MAX);
	r->m->storage[r->stored++] = p;
}

static int
take_fd(struct reader *r)
{
	int fd;

	if (r->fd_next == r->fd_count) {
		r->wrong = "misses its descriptor";
		return -1;
	}
	fd = r->fds[r->fd_next];
	r->fds[r->fd_next++] = -1;
	return fd;
}

static void
get_i64(struct reader *r, const struct msg_field *f, void *at)
{
	int64_t value = (int64_t)get_uint(r, 8);

	if (value < f->least || value > f->most)
		r->wrong = "is out of bounds";
	memcpy(at, &value, sizeof(value));
}

static void
get_opt(struct reader *r, const struct msg_field *f, void *at)
{
	struct opt *opt = at;
	uint64_t has = get_uint(r, 1);

	opt->has = has == 1;
	opt->value = (int64_t)get_uint(r, 8);
	if (has > 1 || (!opt->has && opt->value != 0) ||
	    (opt->has && (opt->value < f->least || opt->value > f->most)))
		r->wrong = "is out of bounds";
}

static void
get_bool(struct reader *r, const struct msg_field *f, void *at)
{
	uint64_t value = get_uint(r, 1);
	bool is_true = value == 1;

	(void)f;
	if (value > 1)
		r->wrong = "is out of bounds";
	memcpy(at, &is_true, sizeof(is_true));
}

static void
get_str(struct reader *r, const struct msg_field *f, void *at)
{
	size_t len = (size_t)get_uint(r, 2);
	const char *text = get_bytes(r, len + 1);

	if (text == NULL)
		text = "";
	else if (len < (size_t)f->least || len > (size_t)f->most)
		r->wrong = "is out of bounds";
	else if (memchr(text, '\0', len + 1) != text + len)
		r->wrong = "holds a NUL byte";
	memcpy(at, &text, sizeof(text));
}

static void
get_large(struct reader *r, const struct msg_field *f, void *at)
{
	struct blob *blob = at;
	uint64_t spilled = get_uint(r, 1);
	size_t len = (size_t)get_uint(r, 4);
	void *copy;
	int fd;

	*blob = (struct blob){NULL, 0};
	if (r->wrong != NULL)
		return;
	if (spilled > 1 || len > (size_t)f->most ||
	    (spilled == 1) != (len > LARGE_INLINE_MAX)) {
		r->wrong = "is out of bounds";
		return;
	}
	if (spilled == 0) {
		blob->bytes = get_bytes(r, len);
		blob->len = blob->bytes == NULL ? 0 : len;
		return;
	}
	if ((fd = take_fd(r)) == -1)
		return;
	copy = xmalloc(len);
	if (spill_read(fd, copy, len) == -1) {
		r->wrong = "is not a sealed memory file of that size";
		free(copy);
	} else {
		store(r, copy);
		*blob = (struct blob){copy, len};
	}
	(void)close(fd);
}

static void
get_ids(struct reader *r, const struct msg_field *f, void *at)
{
	struct ids *ids = at;
	size_t i, count = (size_t)get_uint(r, 2);
	int64_t *list;

	*ids = (struct ids){NULL, 0};
	if (r->wrong != NULL)
		return;
	if (count > (size_t)f->most) {
		r->wrong = "is out of bounds";
		return;
	}
	list = xcalloc(count, sizeof(*list));
	store(r, list);
	for (i = 0; i < count; i++) {
		list[i] = (int64_t)get_uint(r, 8);
		if (list[i] <= 0 && r->wrong == NULL)
			r->wrong = "is out of bounds";
	}
	*ids = (struct ids){list, count};
}

/*
 * The kind of descriptor and the direction it was opened for. A pidfd has no
 * test that a walled process may make, so it is told by what it is not.
 */
static bool
fd_is(int fd, enum fd_class class)
{
	struct stat st;
	int mode = fcntl(fd, F_GETFL);

	if (mode == -1 || fstat(fd, &st) == -1)
		return false;
	mode &= O_ACCMODE;
	switch (class) {
	case FD_SOCKET:
		return S_ISSOCK(st.st_mode);
	case FD_PIPE_READ:
		return S_ISFIFO(st.st_mode) && mode == O_RDONLY;
	case FD_PIPE_WRITE:
		return S_ISFIFO(st.st_mode) && mode == O_WRONLY;
	case FD_PIDFD:
		return !S_ISSOCK(st.st_mode) && !S_ISFIFO(st.st_mode) &&
		    !S_ISDIR(st.st_mode) && !S_ISCHR(st.st_mode);
	case FD_NOT:
		break;
	}
	return false;
}

static void
get_fd(struct reader *r, const struct msg_field *f, void *at)
{
	int *fd = at;

	if (r->wrong != NULL || (*fd = take_fd(r)) == -1)
		return;
	if (!fd_is(*fd, f->fd_class))
		r->wrong = "is another kind of descriptor";
}

typedef void (*get_field)(struct reader *, const struct msg_field *, void *);

static const get_field get_fields[] = {
    [FIELD_I64] = get_i64,
    [FIELD_OPT] = get_opt,
    [FIELD_BOOL] = get_bool,
    [FIELD_STR] = get_str,
    [FIELD_LARGE] = get_large,
    [FIELD_IDS] = get_ids,
    [FIELD_FD] = get_fd,
};

void
frame_header_read(const unsigned char *bytes, struct frame_header *h)
{
	struct reader r = {.at = bytes, .left = FRAME_HEADER_SIZE};

	h->type = (int)get_uint(&r, 2);
	h->fd_count = (size_t)get_uint(&r, 2);
	h->body_len = (size_t)get_uint(&r, 4);
	h->request = get_uint(&r, 8);
}

/* FD fields must be -1 before the first may fail: 0 is a descriptor too. */
static struct msg *
msg_blank(int type, const struct msg_info *info)
{
	struct msg *m = xcalloc(1, sizeof(*m));
	size_t i;

	m->type = (enum msg_type)type;
	for (i = 0; i < info->field_count; i++) {
		if (info->fields[i].kind == FIELD_FD)
			*(int *)((char *)m + info->fields[i].offset) = -1;
	}
	return m;
}

/* Decode the fields; the first that is wrong is named. */
static const char *
decode_fields(struct reader *r, const struct msg_info *info)
{
	const struct msg_field *f;
	size_t i;

	for (i = 0; i < info->field_count; i++) {
		f = &info->fields[i];
		get_fields[f->kind](r, f, (char *)r->m + f->offset);
		if (r->wrong != NULL)
			return f->name;
	}
	if (r->left != 0)
		r->wrong = "has bytes left over";
	else if (r->fd_next != r->fd_count)
		r->wrong = "has a surplus descriptor";
	return "the whole";
}

struct msg *
frame_decode(const unsigned char *bytes, size_t len, const int *fds,
    size_t fd_count, struct error *e)
{
	struct frame_header h = {0};
	const struct msg_info *info = NULL;
	struct reader r = {.fd_count = 0};
	const char *name;
	unsigned char *body;

	if (len >= FRAME_HEADER_SIZE) {
		frame_header_read(bytes, &h);
		info = msg_info(h.type);
	}
	if (info == NULL || fd_count > FRAME_FDS_MAX ||
	    h.body_len != len - FRAME_HEADER_SIZE || len > FRAME_MAX ||
	    h.fd_count != fd_count) {
		close_fds(fds, fd_count);
		(void)error_set(e, "%s: a bad header", msg_name(h.type));
		return NULL;
	}
	r.m = msg_blank(h.type, info);
	r.m->request = h.request;
	r.m->size = len;
	body = xmemdup(bytes + FRAME_HEADER_SIZE, h.body_len);
	store(&r, body);
	r.at = body;
	r.left = h.body_len;
	r.fd_count = fd_count;
	if (fd_count != 0)
		memcpy(r.fds, fds, fd_count * sizeof(*fds));
	name = decode_fields(&r, info);
	while (r.fd_next < r.fd_count)
		(void)close(r.fds[r.fd_next++]);
	if (r.wrong == NULL)
		return r.m;
	(void)error_set(e, "%s: %s %s", info->name, name, r.wrong);
	msg_free(r.m);
	return NULL;
}
