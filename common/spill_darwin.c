#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/spill.h"

/*
 * There is no memfd: a file without a name, opened again for reading only, so
 * that the receiver's descriptor cannot change it.
 */
int
spill_make(const void *bytes, size_t len)
{
	char name[] = "/tmp/connectd.XXXXXXXX";
	int writer = mkstemp(name), reader = -1;

	if (writer == -1)
		return -1;
	if (write(writer, bytes, len) == (ssize_t)len)
		reader = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	(void)unlink(name);
	(void)close(writer);
	return reader;
}

int
spill_read(int fd, void *out, size_t len)
{
	struct stat st;

	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) || st.st_nlink != 0 ||
	    (size_t)st.st_size != len ||
	    (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
		return -1;
	return pread(fd, out, len, 0) == (ssize_t)len ? 0 : -1;
}
