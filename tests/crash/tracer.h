/*
 * killat from C: what is started with tracer_birth() in its child, before its
 * exec, is what it follows. killat.h says how rules are written and what is
 * said of them.
 */
#ifndef TESTS_TRACER_H
#define TESTS_TRACER_H

#include <sys/types.h>

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct tracer {
	pid_t pid;
	int commands;
	FILE *said;
};

/* PROGRAM is killat; RULES ends with NULL. Failing is fatal. */
void tracer_start(
    struct tracer *t, const char *program, const char *const *rules);
/* In a forked child; it goes on when it is followed. */
void tracer_birth(struct tracer *t);
/* Rule N, a `later` one, counts from when killat says `armed`. */
void tracer_arm(struct tracer *t, int n);
/* The same, waiting for that; what is said before is skipped. */
void tracer_await_armed(struct tracer *t, int n);
/* Until that is said; what is before it is skipped. */
void tracer_await(struct tracer *t, const char *what);
/* What rule N holds goes on. */
void tracer_go(struct tracer *t, int n);
/*
 * The next thing said, the caller's; NULL at the end of all. Waits for it.
 */
json_t *tracer_next(struct tracer *t);
/* Is it of this kind? */
bool tracer_said(const json_t *record, const char *what);
/* When the tree has ended: killat's exit status; what it said is skipped. */
int tracer_end(struct tracer *t);

#endif
