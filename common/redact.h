/*
 * Redaction of whatever leaves a worker toward a log, a line or a person
 * (dispatch.md 13). In this order: named secrets and values of environments,
 * longest first; paths under named directories; e-mail addresses; bearer
 * values and unbroken runs of 40 or more of [A-Za-z0-9_-].
 */
#ifndef COMMON_REDACT_H
#define COMMON_REDACT_H

#include <stdbool.h>
#include <stddef.h>

/* Shorter values of an environment say nothing and would eat words. */
#define REDACT_VALUE_LEAST 6
#define REDACT_LINE_MAX 300

struct redactor;

struct redactor *redactor_new(void);
/* NULL is fine. */
void redactor_free(struct redactor *r);

/* A secret of any length but 0. Copied. */
void redactor_add_secret(struct redactor *r, const char *value);
/*
 * A variable of a worker's or its servers' environment: left out when NAME
 * is one of the base names (HOME, PATH, ...) that every worker gets, or
 * when VALUE is short.
 */
void redactor_add_environment(
    struct redactor *r, const char *name, const char *value);
/*
 * A directory, as it was given and, unless NULL, with its links resolved
 * (by whoever can see the file system). Both absolute, else left out.
 */
void redactor_add_directory(
    struct redactor *r, const char *given, const char *resolved);

/* Whether a worker gets this variable as it is (dispatch.md 5.3, BaseEnv). */
bool redact_is_base_name(const char *name);

/*
 * A redacted copy, malloc'ed, NUL-terminated, valid UTF-8 without NUL. R
 * may be NULL: addresses, bearer values and long runs go all the same.
 */
char *redact(const struct redactor *r, const char *text, size_t len);

/*
 * The last line of TEXT (a worker's stderr) that is not blank, as one
 * printable line, redacted, its last REDACT_LINE_MAX bytes. "" if there is
 * none. Malloc'ed.
 */
char *redact_last_line(const struct redactor *r, const char *text, size_t len);

#endif
