/*
 * The reconciliation file of a cutover (operator.md 3.8): what a person found
 * done, and what is to be held. Read strictly, and wholly before anything of
 * it is written.
 */
#ifndef LEDGER_IMPORT_FILE_H
#define LEDGER_IMPORT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define IMPORT_FILE_MAX (16 * 1024 * 1024)
#define IMPORT_FILE_VERSION 1

struct import_entry {
	int64_t event_id;
	bool is_done; /* else it is held */
};

struct import_file {
	struct import_entry *entries; /* in the file's order */
	size_t count;
};

/* Returns 0, or -1 with E that names the entry (from 1) and what is wrong. */
int import_file_read(
    const char *bytes, size_t len, struct import_file *file, struct error *e);
void import_file_free(struct import_file *file);

#endif
