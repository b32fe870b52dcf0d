/*
 * What a fuzz target is: one function that must not crash, and that aborts
 * when a promise about its result does not hold. libFuzzer calls it with
 * bytes it made up, replay.c with the corpus.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(fact)               \
	do {                     \
		if (!(fact))     \
			abort(); \
	} while (0)

#endif
