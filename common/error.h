/*
 * An error that one function hands to the one that can decide about it.
 * The text is a single printable line without a trailing newline; it names
 * what failed and where (a file, a key, a message), never foreign bytes.
 */
#ifndef COMMON_ERROR_H
#define COMMON_ERROR_H

#define ERROR_TEXT_MAX 512

struct error {
	int code;                  /* an errno value, or 0 */
	char text[ERROR_TEXT_MAX]; /* "" when nothing failed */
};

/*
 * Set E to the formatted text, cut at ERROR_TEXT_MAX; code becomes 0.
 * E may be NULL. Always returns -1, so that a caller can return it.
 */
int error_set(struct error *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The same with the present errno: its text is appended, its value kept. */
int error_errno(struct error *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
