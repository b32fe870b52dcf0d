/*
 * The system-call filter of a role, composed of the words of sandbox.h
 * (anchors 4.2; Linux only).
 */
#ifndef COMMON_SECCOMP_FILTER_H
#define COMMON_SECCOMP_FILTER_H

#include "common/error.h"

/*
 * Allow this process the calls of WORDS and nothing else, irreversibly. Needs
 * no_new_privs. What is not listed kills the process with SIGSYS; what libc
 * tries by itself and can do without fails with EACCES; a call younger than
 * this list fails with ENOSYS, as it does on a kernel that lacks it, so that
 * a newer libc falls back. In a SANDBOX_DEBUG build the killing is preceded
 * by a line on stderr that names the call.
 */
int seccomp_enter(unsigned int words, struct error *e);

#endif
