/*
 * The poll lane: from the token to a saved position, and again (feed.md 1,
 * 4.1-4.4). Its states are the rows of one table in feed.c.
 */
#ifndef INTAKE_FEED_H
#define INTAKE_FEED_H

#include "intake/intake.h"

struct feed *feed_new(struct intake *in);
/*
 * A generation of configuration counts from now on. Enters the feed, anew if
 * its identity changed or it had ended for good; else goes on undisturbed.
 */
void feed_configure(struct feed *f);
/* The backlog has room again. */
void feed_resume(struct feed *f);
/* Ask for nothing more. What was handed to the ledger stands. */
void feed_stop(struct feed *f);

#endif
