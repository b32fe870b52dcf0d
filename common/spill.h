/*
 * Memory files: how a field too long for a frame travels. The sender fills
 * and seals one; the receiver checks type, seals and size and reads it into
 * its own memory, never mapping it (spill_linux.c, spill_darwin.c).
 */
#ifndef COMMON_SPILL_H
#define COMMON_SPILL_H

#include <stddef.h>

/* A sealed file of exactly these bytes, close-on-exec; -1 with errno. */
int spill_make(const void *bytes, size_t len);
/* Read all LEN bytes of FD. -1 unless it is sealed and exactly that long. */
int spill_read(int fd, void *out, size_t len);

#endif
