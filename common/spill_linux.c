#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/spill.h"

#define SPILL_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static int
write_all(int fd, const char *bytes, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = write(fd, bytes, len);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return -1;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

int
spill_make(const void *bytes, size_t len)
{
	int fd = memfd_create("connectd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int saved;

	if (fd == -1)
		return -1;
	if (write_all(fd, bytes, len) == 0 &&
	    fcntl(fd, F_ADD_SEALS, SPILL_SEALS) == 0)
		return fd;
	saved = errno;
	(void)close(fd);
	errno = saved;
	return -1;
}

int
spill_read(int fd, void *out, size_t len)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	size_t done = 0;
	ssize_t n;

	if (seals == -1 || (seals & SPILL_SEALS) != SPILL_SEALS ||
	    fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) ||
	    (size_t)st.st_size != len)
		return -1;
	while (done < len) {
		n = pread(fd, (char *)out + done, len - done, (off_t)done);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		done += (size_t)n;
	}
	return 0;
}
