#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/buffer.h"
#include "common/redact.h"
#include "common/text.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

#define RUN_LEAST 40

/* What to look for, the longest first. */
struct needles {
	char **list;
	size_t count;
};

struct redactor {
	struct needles values;
	struct needles directories;
};

static const char *const base_names[] = {"HOME", "PATH", "USER", "LOGNAME",
    "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "TZ",
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR"};

bool
redact_is_base_name(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(base_names) / sizeof(base_names[0]); i++)
		if (strcmp(name, base_names[i]) == 0)
			return true;
	return false;
}

struct redactor *
redactor_new(void)
{
	return xcalloc(1, sizeof(struct redactor));
}

static void
needles_free(struct needles *n)
{
	while (n->count > 0)
		free(n->list[--n->count]);
	free(n->list);
}

void
redactor_free(struct redactor *r)
{
	if (r == NULL)
		return;
	needles_free(&r->values);
	needles_free(&r->directories);
	free(r);
}

static void
needles_add(struct needles *n, const char *text, size_t len)
{
	size_t i;

	n->list = xreallocarray(n->list, n->count + 1, sizeof(*n->list));
	for (i = n->count++; i > 0 && strlen(n->list[i - 1]) < len; i--)
		n->list[i] = n->list[i - 1];
	n->list[i] = xstrndup(text, len);
}

void
redactor_add_secret(struct redactor *r, const char *value)
{
	if (*value != '\0')
		needles_add(&r->values, value, strlen(value));
}

void
redactor_add_environment(
    struct redactor *r, const char *name, const char *value)
{
	if (!redact_is_base_name(name) && strlen(value) >= REDACT_VALUE_LEAST)
		redactor_add_secret(r, value);
}

/* Without the slashes at its end; the root alone would be every path. */
static void
add_directory(struct redactor *r, const char *path)
{
	size_t len = strlen(path);

	while (len > 0 && path[len - 1] == '/')
		len--;
	if (len > 1 && path[0] == '/')
		needles_add(&r->directories, path, len);
}

void
redactor_add_directory(
    struct redactor *r, const char *given, const char *resolved)
{
	add_directory(r, given);
	if (resolved != NULL && strcmp(given, resolved) != 0)
		add_directory(r, resolved);
}

/* The length of the longest needle at TEXT, 0 if none is there. */
static size_t
needle_at(const struct needles *n, const char *text, size_t len)
{
	size_t i, size;

	for (i = 0; i < n->count; i++) {
		if (n->list[i][0] != text[0])
			continue;
		size = strlen(n->list[i]);
		if (size <= len && memcmp(text, n->list[i], size) == 0)
			return size;
	}
	return 0;
}

/* Values that overlap go as one: no rest of the second may stay. */
static void
hide_values(
    const struct redactor *r, const char *text, size_t len, struct buffer *out)
{
	size_t i, end, at, n;

	for (i = 0; i < len; i = end) {
		end = i + needle_at(&r->values, text + i, len - i);
		if (end == i) {
			buffer_add_char(out, text[end++]);
			continue;
		}
		for (at = i + 1; at < end; at++) {
			n = needle_at(&r->values, text + at, len - at);
			if (at + n > end)
				end = at + n;
		}
		buffer_add_text(out, "[redacted]");
	}
}

static bool
ends_path(char c)
{
	return c != '\0' && strchr(" \t\n\v\f\r\"'`)]:;,", c) != NULL;
}

static void
hide_paths(
    const struct redactor *r, const char *text, size_t len, struct buffer *out)
{
	size_t i, n;

	for (i = 0; i < len; i += n) {
		n = needle_at(&r->directories, text + i, len - i);
		if (n == 0) {
			buffer_add_char(out, text[i]);
			n = 1;
			continue;
		}
		while (i + n < len && !ends_path(text[i + n]))
			n++;
		buffer_add_text(out, "[connector path]");
	}
}

static bool
is_alpha(char c)
{
	return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static bool
is_alnum(char c)
{
	return is_alpha(c) || (c >= '0' && c <= '9');
}

/* Letters of other alphabets are allowed in an address. */
static bool
is_local(char c)
{
	return is_alnum(c) || (unsigned char)c >= 0x80 ||
	    (c != '\0' && strchr("._%+-", c) != NULL);
}

static bool
is_domain(char c)
{
	return is_alnum(c) || (unsigned char)c >= 0x80 || c == '.' || c == '-';
}

static bool
is_letter(char c)
{
	return is_alpha(c) || (unsigned char)c >= 0x80;
}

/* How much of TEXT is a domain with a dot and two letters behind it in it. */
static size_t
domain_length(const char *text, size_t len)
{
	size_t i, n;

	for (n = 0; n < len && is_domain(text[n]); n++)
		continue;
	for (i = 1; i + 2 < n; i++)
		if (text[i] == '.' && is_letter(text[i + 1]) &&
		    is_letter(text[i + 2]))
			break;
	if (i + 2 >= n)
		return 0;
	while (!is_alnum(text[n - 1]) && (unsigned char)text[n - 1] < 0x80)
		n--;
	return n;
}

static void
hide_addresses(
    const struct redactor *r, const char *text, size_t len, struct buffer *out)
{
	size_t i, local, done = 0, n;

	for (i = 0; i < len; i++) {
		if (text[i] != '@')
			continue;
		for (local = i; local > done && is_local(text[local - 1]);)
			local--;
		n = domain_length(text + i + 1, len - i - 1);
		if (local == i || n == 0)
			continue;
		buffer_add(out, text + done, local - done);
		buffer_add_text(out, "[email redacted]");
		done = i + 1 + n;
	}
	buffer_add(out, text + done, len - done);
}

static bool
is_run(char c)
{
	return is_alnum(c) || c == '_' || c == '-';
}

/* After "bearer" at TEXT: its length with the blanks, 0 if it is not that. */
static size_t
bearer_at(const char *text, size_t len)
{
	static const char word[] = "bearer";
	size_t n = sizeof(word) - 1;

	if (len <= n || strncasecmp(text, word, n) != 0 ||
	    (text[n] != ' ' && text[n] != '\t'))
		return 0;
	while (n < len && (text[n] == ' ' || text[n] == '\t'))
		n++;
	return n;
}

static size_t
credential_length(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len &&
	    (is_run(text[n]) ||
		(text[n] != '\0' && strchr(".~+/=", text[n]) != NULL)))
		n++;
	return n;
}

static void
hide_bearers(
    const struct redactor *r, const char *text, size_t len, struct buffer *out)
{
	size_t i, n, size;

	for (i = 0; i < len; i += n) {
		n = i > 0 && is_alnum(text[i - 1])
		    ? 0
		    : bearer_at(text + i, len - i);
		size =
		    n == 0 ? 0 : credential_length(text + i + n, len - i - n);
		if (size == 0) {
			n = 1;
			buffer_add_char(out, text[i]);
			continue;
		}
		buffer_add(out, text + i, n);
		buffer_add_text(out, "[credential redacted]");
		n += size;
	}
}

/* Dashes at the ends of a run are no part of it: a ruled line stays. */
static void
hide_runs(
    const struct redactor *r, const char *text, size_t len, struct buffer *out)
{
	size_t i, n, end;

	for (i = 0; i < len; i += n) {
		n = 1;
		if (!is_run(text[i]) || text[i] == '-') {
			buffer_add_char(out, text[i]);
			continue;
		}
		while (i + n < len && is_run(text[i + n]))
			n++;
		for (end = n; text[i + end - 1] == '-'; end--)
			continue;
		if (end < RUN_LEAST) {
			buffer_add(out, text + i, n);
			continue;
		}
		buffer_add_text(out, "[credential redacted]");
		buffer_add(out, text + i + end, n - end);
	}
}

static void
hide_bad_bytes(
    const struct redactor *r, const char *text, size_t len, struct buffer *out)
{
	char *clean = text_make_utf8(text, len, &len);

	buffer_add(out, clean, len);
	free(clean);
}

/* The order is the contract's. */
static void (*const steps[])(
    const struct redactor *, const char *, size_t, struct buffer *) = {
    hide_values,
    hide_paths,
    hide_addresses,
    hide_bearers,
    hide_runs,
    hide_bad_bytes,
};

char *
redact(const struct redactor *r, const char *text, size_t len)
{
	static const struct redactor nothing;
	struct buffer in = {0}, out;
	size_t i;

	buffer_add(&in, text, len);
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		out = (struct buffer){0};
		steps[i](r != NULL ? r : &nothing, in.bytes, in.len, &out);
		buffer_add(&out, "", 0);
		buffer_free(&in);
		in = out;
	}
	return buffer_take(&in, NULL);
}

/* The last line that is not blank, as one printable line; "" if none is. */
static char *
last_line(const char *text, size_t len)
{
	size_t start;
	char *line;

	for (;;) {
		for (start = len; start > 0; start--)
			if (text[start - 1] == '\n' || text[start - 1] == '\r')
				break;
		line = text_single_line(text + start, len - start, NULL);
		if (*line != '\0' || start == 0)
			return line;
		free(line);
		len = start - 1;
	}
}

/*
 * Redacted before a line is chosen, since a secret may have several, and
 * after the terminal's sequences are out of it, since one may hide in them.
 */
char *
redact_last_line(const struct redactor *r, const char *text, size_t len)
{
	char *all, *line, *clean;
	size_t skip;

	all = redact(r, text, len);
	line = last_line(all, strlen(all));
	clean = redact(r, line, strlen(line));
	len = strlen(clean);
	skip = utf8_cut_front(clean, len, REDACT_LINE_MAX);
	memmove(clean, clean + skip, len - skip + 1);
	free(line);
	free(all);
	return clean;
}
