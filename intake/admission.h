/*
 * The records that wait for a decision, taken from the ledger by ascending
 * id, a few decided at once (admission.md 1.2). Nothing is remembered here
 * but what is under way: what is undecided is the ledger's to know.
 */
#ifndef INTAKE_ADMISSION_H
#define INTAKE_ADMISSION_H

#include "intake/intake.h"

struct admission *admission_new(struct intake *in);
/* A generation of configuration counts from now on; the first one begins. */
void admission_configure(struct admission *a);
/* This record waits; 0: some do. Asks the ledger when there is a hand free. */
void admission_offer(struct admission *a, int64_t event_id);
/* Give up what is under way: those records stay as they are. */
void admission_stop(struct admission *a);

#endif
