/*
 * A connector that starts anew is connected to anew, which the walled server
 * cannot do and must not be able to: with connect() it would reach the control
 * socket as well, as whoever started it. So it has a child that stays outside
 * of the walls, and can be asked for one thing only.
 */
#ifndef MCPD_OPENER_H
#define MCPD_OPENER_H

#include "common/error.h"

/*
 * Fork it, with nothing of ours but standard error, and run FORGET in it first,
 * which wipes what it need not know. It ends with us. A socket to
 * ask it over, or -1.
 */
int opener_start(const char *dir, void (*forget)(void), struct error *e);

/* A new connection to the connector over DIR; -1: there is none. */
int opener_ask(int opener);

#endif
