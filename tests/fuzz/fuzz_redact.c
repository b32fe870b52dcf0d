/* Redaction: the first line of the input is a secret, the second a
 * directory, the rest the text. */
#include <string.h>

#include "common/redact.h"
#include "common/text.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "tests/fuzz/fuzz.h"

/* The next line of what is left, as a string of its own. */
static char *
line_take(const char **at, size_t *left)
{
	const char *end = memchr(*at, '\n', *left);
	size_t len = end == NULL ? *left : (size_t)(end - *at);
	char *line = xstrndup(*at, len);

	*at += len + (end != NULL);
	*left -= len + (end != NULL);
	return line;
}

/* Whether SECRET could come about from what redaction itself writes. */
static bool
is_telling(const char *secret)
{
	static const char ours[] =
	    "[redacted][connector path][email redacted][credential redacted]";
	const char *c;

	for (c = secret; *c != '\0'; c++)
		if ((unsigned char)*c >= 0x80 || strchr("[] ", *c) != NULL)
			return false;
	return *secret != '\0' && strstr(ours, secret) == NULL;
}

static void
check_line(
    const struct redactor *r, const char *text, size_t len, const char *secret)
{
	char *line = redact_last_line(r, text, len), *same;

	MUST(strlen(line) <= REDACT_LINE_MAX);
	MUST(utf8_is_valid(line, strlen(line)));
	MUST(!is_telling(secret) || strstr(line, secret) == NULL);
	same = text_single_line(line, strlen(line), NULL);
	/* The cut may leave a space in front. */
	MUST(strcmp(same, line + (*line == ' ')) == 0);
	free(same);
	free(line);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data;
	char *secret = line_take(&at, &size);
	char *directory = line_take(&at, &size);
	struct redactor *r = redactor_new();
	char *out;

	redactor_add_environment(r, "A", secret);
	redactor_add_secret(r, secret);
	redactor_add_directory(r, directory, NULL);
	out = redact(r, at, size);
	MUST(utf8_is_valid(out, strlen(out)));
	MUST(!is_telling(secret) || strstr(out, secret) == NULL);
	check_line(r, at, size, secret);
	free(out);
	free(redact(NULL, at, size));
	redactor_free(r);
	free(directory);
	free(secret);
	return 0;
}
