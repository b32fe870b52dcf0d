/* The command line of connectd (design 7, operator.md 5.1). */
#ifndef SUPERVISOR_OPTIONS_H
#define SUPERVISOR_OPTIONS_H

#include "supervisor/supervisor.h"

enum options_what { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_WRONG };

extern const char options_usage[];

/* On OPTIONS_WRONG the text of E names the flag. O is filled for RUN only. */
enum options_what options_read(
    int argc, char *const argv[], struct options *o, struct error *e);
void options_free(struct options *o);

#endif
