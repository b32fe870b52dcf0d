#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/redact.h"
#include "dispatcher/attempt.h"
#include "dispatcher/prompt.h"

/* ---- what the agent says ------------------------------------------------ */

static void
on_verified(struct attempt *a, const struct driver_said *said)
{
	attempt_drop_declaration(a);
}

static void
on_progress(struct attempt *a, const struct driver_said *said)
{
	attempt_note_progress(a);
}

static void
on_turn_over(struct attempt *a, const struct driver_said *said)
{
	a->answer = said->stop;
	/* How it ends may be decided: this was another answer then. */
	if (said->text[0] != '\0' && a->stop[0] == '\0')
		log_warnx("%s: %s", a->id, said->text);
	attempt_event(a, EV_ANSWER);
}

static void
on_unsafe(struct attempt *a, const struct driver_said *said)
{
	log_warnx("%s: not the session asked for: it %s", a->id, said->text);
	attempt_drop_declaration(a);
	attempt_event(a, EV_UNSAFE);
}

static void (*const said_handlers[])(
    struct attempt *, const struct driver_said *) = {
    [DRIVER_NOTHING] = NULL,
    [DRIVER_PROGRESS] = on_progress,
    [DRIVER_VERIFIED] = on_verified,
    [DRIVER_REFUSAL] = on_progress,
    [DRIVER_ANSWER] = on_turn_over,
    [DRIVER_UNSAFE] = on_unsafe,
};

static void
on_line(const char *bytes, size_t len, void *arg)
{
	struct attempt *a = arg;
	struct driver_said said;

	a->driver->line(a->session, bytes, len, &said);
	/* Written before the turn's end is acted on (dispatch.md 6). */
	attempt_note_refusals(a, said.refusals);
	/* Of what is being ended nothing else counts, nor is it logged. */
	if (said_handlers[said.event] != NULL && a->state < AT_ENDING)
		said_handlers[said.event](a, &said);
}

static void
on_end(void *arg)
{
	struct attempt *a = arg;

	a->output_ended = true;
	attempt_event(a, EV_EOF);
}

static const struct stream_reader_ops reader_ops = {on_line, on_end};

/* ---- what the agent is told --------------------------------------------- */

void
session_open(struct attempt *a, struct msg_worker_spawned *spawned)
{
	struct event_base *base = a->d->role.base;

	a->session = a->driver->open(spawned->session_id, spawned->servers);
	a->pidfd = spawned->pidfd;
	a->input = stream_writer_new(base, spawned->input);
	a->output = stream_reader_new(base, spawned->output, &reader_ops, a);
	a->errors = stream_tail_new(base, spawned->errors);
	spawned->pidfd = spawned->input = -1;
	spawned->output = spawned->errors = -1;
}

/* The first prompt is the task's own event; each further one joined it. */
void
session_prompt(struct attempt *a)
{
	char *text = a->follow_up != 0
	    ? prompt_follow_up(a->follow_up)
	    : prompt_first(a->task_id, a->event_id, a->trigger, a->url);
	size_t len;
	char *bytes = a->driver->prompt(a->session, text, &len);

	stream_write(a->input, bytes, len);
	free(bytes);
	free(text);
}

void
session_interrupt(struct attempt *a)
{
	size_t len;
	char *bytes = a->driver->interrupt(a->session, &len);

	if (bytes != NULL)
		stream_write(a->input, bytes, len);
	free(bytes);
}

void
session_leave(struct attempt *a)
{
	stream_writer_free(a->input);
	a->input = NULL;
}

/* Its own last words, when it did not end well; the supervisor redacts. */
static void
say_last_words(struct attempt *a)
{
	const char *tail;
	char *line;
	size_t len;

	if (a->errors == NULL || strcmp(a->stop, "finished") == 0)
		return;
	tail = stream_tail_text(a->errors, &len);
	line = redact_last_line(NULL, tail, len);
	if (line[0] != '\0')
		log_warnx("%s ended %s; it said: %s", a->id, a->stop, line);
	else if (strcmp(a->stop, "failed") == 0)
		log_warnx("%s ended %s, with nothing on its standard error",
		    a->id, a->stop);
	free(line);
}

void
session_close(struct attempt *a)
{
	say_last_words(a);
	stream_writer_free(a->input);
	stream_reader_free(a->output);
	stream_tail_free(a->errors);
	if (a->pidfd != -1)
		(void)close(a->pidfd);
	if (a->session != NULL)
		a->driver->close(a->session);
	a->input = NULL;
	a->output = NULL;
	a->errors = NULL;
	a->session = NULL;
	a->pidfd = -1;
}
