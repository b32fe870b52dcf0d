/*
 * Whether a body says a secret, in whatever form the renderer gave it (design
 * L8): a worker's text may have become HTML since.
 */
#ifndef OUTBOX_SECRET_H
#define OUTBOX_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/*
 * As it stands; as it is read, without tags and with entities decoded; as an
 * address, with percent escapes decoded besides. A secret of at least so many
 * letters and digits is also found by these alone: Markdown takes marks away
 * and puts tags in between.
 */
#define SECRET_LETTERS_LEAST 8

bool secret_is_in(const char *secret, const char *body, size_t len);

#endif
