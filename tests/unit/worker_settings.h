/* Settings of which only what they say of the worker matters. */
#ifndef TESTS_UNIT_WORKER_SETTINGS_H
#define TESTS_UNIT_WORKER_SETTINGS_H

#include "supervisor/settings.h"

/* WORKER is the value of `worker`. They are the caller's. */
struct settings *settings_with(const struct paths *paths, const char *worker);

#endif
