/*
 * connectd-ledger on a command line: what can be asked of a ledger while no
 * connector runs (design L3, L6).
 */
#ifndef LEDGER_INSPECT_H
#define LEDGER_INSPECT_H

#include "common/error.h"

/*
 * --print-schema | --print-lifecycle
 * [--insecure] --inspect STATE_DIR status | events [N] | show EVENT
 * [--insecure] --promote SHADOW_DIR STATE_DIR --by NAME (promote.h)
 * Prints on stdout, complains on stderr, returns an exit code. An event that
 * is not there is shown as null.
 */
int inspect_main(int argc, char **argv);

/*
 * What a role's start does for it, before the walls: nothing is opened for a
 * seed later. -1 with E.
 */
int inspect_process_init(struct error *e);

#endif
