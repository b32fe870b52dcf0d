/*
 * What a person reads. Everything printed is one printable line: what came
 * from elsewhere is stripped of terminal sequences and control characters.
 */
#ifndef CONNECTCTL_TEXT_H
#define CONNECTCTL_TEXT_H

#include <jansson.h>

/* `status`: the object of operator.md 3.1 and the supervisor's part. */
void text_status(const json_t *data);
/* One scalar, "-" for null. */
void text_scalar(const json_t *value);
/* `events`: a list of records, and each line that follows. */
void text_events(const json_t *data);
void text_line(const json_t *line);
/* `show`: any object, its members one a line, what is in them indented. */
void text_members(const json_t *object, int indent);

#endif
