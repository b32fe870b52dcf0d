/*
 * Where connectd's other programs are. They belong to this very build, so
 * they are looked for only beside the running executable D/connectd:
 *	D/NAME				a folder of its own
 *	D/../libexec/connectd/NAME	installed: bin or sbin beside libexec
 *	D/../FOLDER/NAME		a build tree: one folder a process
 * The PATH is not asked.
 */
#ifndef SUPERVISOR_LOCATE_H
#define SUPERVISOR_LOCATE_H

#include "common/error.h"

/* The first of the three that exists; *PATH is the caller's to free. */
int locate_program(
    const char *name, const char *folder, char **path, struct error *e);

#endif
