#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "tests/unit/ledger_fault.h"

struct fault fault;

/* The real file lies behind ours. */
struct file {
	sqlite3_file base;
	bool is_wal;
};

static sqlite3_vfs *real_vfs;
static sqlite3_vfs our_vfs;
static sqlite3_io_methods our_methods;

static sqlite3_file *
real(sqlite3_file *f)
{
	return (sqlite3_file *)((struct file *)f + 1);
}

/* SQLITE_OK, or the code to fail with. */
static int
fault_hit(sqlite3_file *f, enum fault_at at)
{
	if (!((struct file *)f)->is_wal || fault.at != at)
		return SQLITE_OK;
	if (fault.skip > 0) {
		fault.skip--;
		return SQLITE_OK;
	}
	if (fault.count == 0)
		return SQLITE_OK;
	if (fault.count > 0)
		fault.count--;
	fault.hits++;
	return fault.rc;
}

static int
on_write(sqlite3_file *f, const void *bytes, int n, sqlite3_int64 at)
{
	int rc = at < fault.beyond ? SQLITE_OK : fault_hit(f, FAULT_WRITE);

	return rc != SQLITE_OK
	    ? rc
	    : real(f)->pMethods->xWrite(real(f), bytes, n, at);
}

static int
on_sync(sqlite3_file *f, int flags)
{
	int rc = fault_hit(f, FAULT_SYNC);

	return rc != SQLITE_OK ? rc : real(f)->pMethods->xSync(real(f), flags);
}

static int
on_close(sqlite3_file *f)
{
	return real(f)->pMethods->xClose(real(f));
}

static int
on_read(sqlite3_file *f, void *bytes, int n, sqlite3_int64 at)
{
	return real(f)->pMethods->xRead(real(f), bytes, n, at);
}

static int
on_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	return real(f)->pMethods->xTruncate(real(f), size);
}

static int
on_size(sqlite3_file *f, sqlite3_int64 *size)
{
	return real(f)->pMethods->xFileSize(real(f), size);
}

static int
on_lock(sqlite3_file *f, int lock)
{
	return real(f)->pMethods->xLock(real(f), lock);
}

static int
on_unlock(sqlite3_file *f, int lock)
{
	return real(f)->pMethods->xUnlock(real(f), lock);
}

static int
on_check(sqlite3_file *f, int *out)
{
	return real(f)->pMethods->xCheckReservedLock(real(f), out);
}

static int
on_control(sqlite3_file *f, int op, void *arg)
{
	return real(f)->pMethods->xFileControl(real(f), op, arg);
}

static int
on_sector(sqlite3_file *f)
{
	return real(f)->pMethods->xSectorSize(real(f));
}

static int
on_device(sqlite3_file *f)
{
	return real(f)->pMethods->xDeviceCharacteristics(real(f));
}

static int
on_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
	return real(f)->pMethods->xShmMap(real(f), page, size, extend, out);
}

static int
on_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
	return real(f)->pMethods->xShmLock(real(f), offset, n, flags);
}

static void
on_shm_barrier(sqlite3_file *f)
{
	real(f)->pMethods->xShmBarrier(real(f));
}

static int
on_shm_unmap(sqlite3_file *f, int drop)
{
	return real(f)->pMethods->xShmUnmap(real(f), drop);
}

static int
on_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags,
    int *out_flags)
{
	struct file *ours = (struct file *)f;
	int rc;

	ours->base.pMethods = NULL;
	ours->is_wal = (flags & SQLITE_OPEN_WAL) != 0;
	memset(real(f), 0, (size_t)real_vfs->szOsFile);
	rc = real_vfs->xOpen(real_vfs, name, real(f), flags, out_flags);
	if (real(f)->pMethods != NULL)
		ours->base.pMethods = &our_methods;
	return rc;
}

void
fault_register(void)
{
	our_methods = (sqlite3_io_methods){.iVersion = 2,
	    .xClose = on_close,
	    .xRead = on_read,
	    .xWrite = on_write,
	    .xTruncate = on_truncate,
	    .xSync = on_sync,
	    .xFileSize = on_size,
	    .xLock = on_lock,
	    .xUnlock = on_unlock,
	    .xCheckReservedLock = on_check,
	    .xFileControl = on_control,
	    .xSectorSize = on_sector,
	    .xDeviceCharacteristics = on_device,
	    .xShmMap = on_shm_map,
	    .xShmLock = on_shm_lock,
	    .xShmBarrier = on_shm_barrier,
	    .xShmUnmap = on_shm_unmap};
	real_vfs = sqlite3_vfs_find(NULL);
	our_vfs = *real_vfs;
	our_vfs.zName = "fault";
	our_vfs.szOsFile = real_vfs->szOsFile + (int)sizeof(struct file);
	our_vfs.xOpen = on_open;
	if (sqlite3_vfs_register(&our_vfs, 1) != SQLITE_OK)
		abort();
}
