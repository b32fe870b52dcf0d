/*
 * A message as bytes and descriptors on a socket (design 3). Its fields, their
 * order and their bounds are those of the table in common/protocol.
 */
#ifndef COMMON_FRAME_H
#define COMMON_FRAME_H

#include "common/protocol.h"

/* A frame: this header, then the body; both little-endian on the wire. */
#define FRAME_HEADER_SIZE 16
#define FRAME_MAX 16384
#define FRAME_FDS_MAX 8
/* A LARGE field above this travels as a sealed memfd. */
#define LARGE_INLINE_MAX 2048

/* A frame ready to be sent. */
struct frame {
	unsigned char *bytes; /* header and body */
	size_t len;
	int fds[FRAME_FDS_MAX];
	size_t fd_count;
};

/*
 * Encode M. Its FD fields are taken over: they are in OUT, or closed on
 * failure. Fails (with a text naming message and field) when a field is
 * outside its bounds, which is the caller's bug, or without descriptors.
 */
int frame_encode(struct msg *m, struct frame *out, struct error *e);
/* Free the bytes and close the descriptors. */
void frame_free(struct frame *f);
/* A second one with duplicated descriptors, or -1 with errno. */
int frame_dup(const struct frame *f, struct frame *out);

/*
 * Decode one whole frame. The FD_COUNT descriptors are taken over in every
 * case. Everything is checked: type, bounds, NUL bytes, descriptor classes,
 * seals, bytes left over. The message is freed with msg_free(). On failure
 * NULL, and a text that names the message and the field, never its bytes.
 */
struct msg *frame_decode(const unsigned char *bytes, size_t len, const int *fds,
    size_t fd_count, struct error *e);

/* What a header says; the caller has checked that 16 bytes are there. */
struct frame_header {
	int type;
	size_t fd_count;
	size_t body_len;
	uint64_t request;
};
void frame_header_read(const unsigned char *bytes, struct frame_header *h);

#endif
