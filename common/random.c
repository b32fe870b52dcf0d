#include <sys/random.h>

#include <stdio.h>
#include <unistd.h>

#include "common/log.h"
#include "common/random.h"

#define BYTES_MAX 256 /* getentropy(3)'s */

void
random_hex(char *out, size_t bytes)
{
	unsigned char random[BYTES_MAX];
	size_t i;

	if (bytes > sizeof(random) || getentropy(random, bytes) == -1)
		fatal("no random bytes");
	for (i = 0; i < bytes; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", random[i]);
}
