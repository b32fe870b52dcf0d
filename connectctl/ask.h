/*
 * A request of the connector and its answer, and how either is told to a
 * person or, with --json, to a program.
 */
#ifndef CONNECTCTL_ASK_H
#define CONNECTCTL_ASK_H

#include <jansson.h>

#include "connectctl/connection.h"
#include "connectctl/words.h"

/* One value, a line, to standard output. */
void print_json(const json_t *value);
/* {"ok":true,"data":DATA}; DATA stays the caller's. */
void print_data(json_t *data);

/* An error of our own, in the shape of the connector's. Returns CODE. */
int fail(const struct wish *w, int code, const char *text);
/* The connector refused: its words. Returns the exit code. */
int fail_answer(const struct wish *w, json_t *answer);
/* There is no event of the argument's number. */
int fail_no_event(const struct wish *w);

/* The next line, the caller's; NULL with E, whose code is the exit code. */
json_t *line_read(struct connection *c, struct error *e);
/*
 * The same, past the transitions that a client which follows is told of
 * meanwhile: the next answer.
 */
json_t *answer_read(struct connection *c, struct error *e);
/*
 * One request (taken over) and its answer. *DATA is its data, to be released
 * by the caller, and EXIT_OK returned; else it was said what is wrong.
 */
int ask(
    const struct wish *w, struct connection *c, json_t *request, json_t **data);
/* Connect, ask, hand the data over; for commands that are just that. */
int ask_once(const struct wish *w, const struct paths *paths, json_t *request,
    json_t **data);

#endif
