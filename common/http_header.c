#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/http.h"
#include "common/xmalloc.h"

/* As long as a Retry-After may be; 68 years serve as for ever. */
#define RETRY_AFTER_MOST INT64_C(2147483647)

static bool
is_all_digits(const char *text)
{
	const char *p;

	for (p = text; *p != '\0'; p++)
		if (!isdigit((unsigned char)*p))
			return false;
	return p > text;
}

static int64_t
parse_seconds(const char *digits)
{
	int64_t n;

	for (n = 0; *digits != '\0'; digits++) {
		n = n * 10 + (*digits - '0');
		if (n > RETRY_AFTER_MOST)
			return RETRY_AFTER_MOST;
	}
	return n;
}

/* The three forms of an HTTP date, preferred one first (RFC 9110 5.6.7). */
static bool
parse_date(const char *text, int64_t *out)
{
	static const char *const forms[] = {
	    "%a, %d %b %Y %H:%M:%S GMT",
	    "%A, %d-%b-%y %H:%M:%S GMT",
	    "%a %b %e %H:%M:%S %Y",
	};
	struct tm tm;
	const char *end;
	size_t i;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		memset(&tm, 0, sizeof(tm));
		end = strptime(text, forms[i], &tm);
		if (end == NULL || *end != '\0')
			continue;
		*out = timegm(&tm);
		return true;
	}
	return false;
}

int64_t
http_parse_retry_after(const char *value, int64_t now)
{
	int64_t at;

	if (is_all_digits(value))
		return parse_seconds(value);
	if (!parse_date(value, &at) || at <= now)
		return 0;
	return at - now > RETRY_AFTER_MOST ? RETRY_AFTER_MOST : at - now;
}

/* Is WORD one of the words of a rel value of LEN bytes? */
static bool
has_relation(const char *value, size_t len, const char *word)
{
	const char *end = value + len, *p = value;
	size_t n;

	while (p < end) {
		for (n = 0; p + n < end && p[n] != ' ' && p[n] != '\t'; n++)
			;
		if (n == strlen(word) && strncasecmp(p, word, n) == 0)
			return true;
		p += n < (size_t)(end - p) ? n + 1 : n;
	}
	return false;
}

/*
 * One parameter `; name=value` at *P, quoted or not. Returns false when
 * something else stands there; *IS_NEXT is set by rel="next".
 */
static bool
read_parameter(const char **p, bool *is_next)
{
	const char *name, *value;
	size_t name_len, value_len;

	*p += strspn(*p, " \t");
	if (**p != ';')
		return false;
	name = *p + 1 + strspn(*p + 1, " \t");
	name_len = strcspn(name, "=;, \t");
	*p = name + name_len + strspn(name + name_len, " \t");
	if (**p != '=')
		return true;
	value = *p + 1 + strspn(*p + 1, " \t");
	if (*value == '"') {
		value++;
		value_len = strcspn(value, "\"");
		*p = value + value_len + (value[value_len] == '"');
	} else {
		value_len = strcspn(value, ";, \t");
		*p = value + value_len;
	}
	if (name_len == 3 && strncasecmp(name, "rel", 3) == 0 &&
	    has_relation(value, value_len, "next"))
		*is_next = true;
	return true;
}

char *
http_parse_link_next(const char *value)
{
	const char *p = value, *target;
	size_t len;
	bool is_next;

	for (;;) {
		p += strspn(p, " \t,");
		if (*p != '<')
			return NULL;
		target = p + 1;
		len = strcspn(target, ">");
		if (target[len] != '>')
			return NULL;
		p = target + len + 1;
		for (is_next = false; read_parameter(&p, &is_next);)
			;
		if (is_next && len > 0)
			return xstrndup(target, len);
	}
}
