/*
 * connectd-ledger --promote: a shadow run's ledger becomes the connector's,
 * held (operator.md 3.7). As root, or as the directories' owner, while nothing
 * runs; whatever kills it, running it again finishes.
 */
#ifndef LEDGER_PROMOTE_H
#define LEDGER_PROMOTE_H

#include <stdbool.h>

/*
 * WORDS are SHADOW_DIR STATE_DIR --by NAME, NULL-ended. Prints what stands as
 * a JSON object on stdout, complains on stderr, returns an exit code:
 * EXIT_USAGE when the words are wrong, and nothing was said.
 */
int promote_main(char *const *words, bool insecure);

#endif
