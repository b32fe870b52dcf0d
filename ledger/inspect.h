/*
 * connectd-ledger on a command line: what can be asked of a ledger while no
 * connector runs (design L3, L6).
 */
#ifndef LEDGER_INSPECT_H
#define LEDGER_INSPECT_H

/*
 * --print-schema | --print-lifecycle
 * [--insecure] --inspect STATE_DIR status | events [N] | show EVENT
 * Prints on stdout, complains on stderr, returns an exit code. An event that
 * is not there is shown as null.
 */
int inspect_main(int argc, char **argv);

#endif
