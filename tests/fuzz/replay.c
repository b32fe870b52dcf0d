/*
 * replay FILE-OR-DIRECTORY... feeds each file once to the target it is
 * linked with, so that every build tries the corpus without libFuzzer.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "tests/fuzz/fuzz.h"

#define FILE_MAX (1024 * 1024)

static unsigned fed;

/* In a block of its own size: a sanitizer sees a step too far. */
static void
feed(const char *path)
{
	static char bytes[FILE_MAX];
	uint8_t *copy;
	size_t len;
	FILE *f = fopen(path, "r");

	if (f == NULL)
		err(1, "%s", path);
	len = fread(bytes, 1, sizeof(bytes), f);
	if (ferror(f))
		err(1, "%s", path);
	(void)fclose(f);
	copy = xmemdup(bytes, len);
	(void)LLVMFuzzerTestOneInput(copy, len);
	free(copy);
	fed++;
}

static void
feed_all(const char *path)
{
	struct dirent **entries;
	struct stat st;
	char *child;
	int i, n;

	if (stat(path, &st) == -1)
		err(1, "%s", path);
	if (!S_ISDIR(st.st_mode)) {
		feed(path);
		return;
	}
	n = scandir(path, &entries, NULL, alphasort);
	if (n == -1)
		err(1, "%s", path);
	for (i = 0; i < n; i++) {
		if (entries[i]->d_name[0] != '.') {
			xasprintf(&child, "%s/%s", path, entries[i]->d_name);
			feed(child);
			free(child);
		}
		free(entries[i]);
	}
	free(entries);
}

int
main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		feed_all(argv[i]);
	if (fed == 0)
		errx(1, "no file to feed");
	printf("%u files\n", fed);
	return 0;
}
