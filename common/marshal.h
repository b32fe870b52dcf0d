/*
 * The part of Ruby's Marshal format 4.8 that signed global ids are made of
 * (admission.md 8.4): nil, true, false, fixnum, string, symbol, symbol link,
 * instance variables (read and dropped), array, hash with string or symbol
 * keys (the last of equal ones counts). Anything else, a depth beyond
 * MAX_DEPTH, a count larger than the bytes that are left, and bytes after
 * the value make the whole undecodable.
 */
#ifndef COMMON_MARSHAL_H
#define COMMON_MARSHAL_H

#include <stddef.h>

#include <jansson.h>

/*
 * A new reference, or NULL. Strings and symbols become JSON strings whose
 * bytes were not looked at (they need not be UTF-8 and may hold NUL).
 * Memory is bounded by a constant times LEN, which the caller bounds.
 */
json_t *marshal_read(const void *bytes, size_t len, unsigned max_depth);

#endif
