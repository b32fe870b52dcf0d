/* The build this executable came from; all of one run have the same. */
#ifndef COMMON_BUILD_ID_H
#define COMMON_BUILD_ID_H

extern const char build_id[]; /* 1 to 64 printable bytes */

#endif
