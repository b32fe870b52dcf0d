#include "ledger/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/role.h"
#include "ledger/database.h"
#include "ledger/handlers.h"
#include "ledger/inspect.h"
#include "ledger/profile.h"
#include "ledger/retention.h"
#include "ledger/startable.h"
#include "ledger/turn.h"

/* Lines beyond this on the supervisor's link are lost, and counted. */
#define LINES_QUEUED_MOST (128 * 1024)
#define LINE_BYTES_MOST 8192
#define IDLE_MS 200

const handler ledger_handlers[MSG_COUNT] = {
    [MSG_QUERY] = handle_query,
    [MSG_IDENTITY] = handle_identity,
    [MSG_IMPORT] = handle_import,
    [MSG_RESOLVE] = handle_resolve,
    [MSG_CONNECTION] = handle_connection,
    [MSG_REDISPATCH] = handle_redispatch,
    [MSG_DISCARD] = handle_discard,
    [MSG_HOLD] = handle_hold,
    [MSG_RELEASE] = handle_release,
    [MSG_ENTRY] = handle_entry,
    [MSG_RECORD] = handle_record,
    [MSG_CHECKPOINT] = handle_checkpoint,
    [MSG_DROP_POSITION] = handle_drop_position,
    [MSG_GAP] = handle_gap,
    [MSG_LOSS] = handle_loss,
    [MSG_LOSS_NEXT] = handle_loss_next,
    [MSG_LOSS_CURSOR] = handle_loss_cursor,
    [MSG_LOSS_ENTRY] = handle_loss_entry,
    [MSG_LOSS_DEADLINE] = handle_loss_deadline,
    [MSG_LOSS_CLOSE] = handle_loss_close,
    [MSG_COUNT_DEATH] = handle_count_death,
    [MSG_NEXT_UNDECIDED] = handle_next_undecided,
    [MSG_VERDICT] = handle_verdict,
    [MSG_THREAD_OF] = handle_thread_of,
    [MSG_NEXT_STARTABLE] = handle_next_startable,
    [MSG_LAUNCH] = handle_launch,
    [MSG_JOIN] = handle_join,
    [MSG_EXPOSE] = handle_expose,
    [MSG_RUNNING] = handle_running,
    [MSG_END] = handle_end,
    [MSG_SETTLE] = handle_settle,
    [MSG_REKEY] = handle_rekey,
    [MSG_TAKE_OVER] = handle_take_over,
    [MSG_PROGRESS] = handle_progress,
    [MSG_REFUSAL] = handle_refusal,
    [MSG_STILL_RUNNING] = handle_still_running,
    [MSG_TREE_HELD] = handle_tree_held,
    [MSG_NEXT_LIVE] = handle_next_live,
    [MSG_ADOPTABLE_NEXT] = handle_adoptable_next,
    [MSG_ADOPT] = handle_adopt,
    [MSG_NEXT_DUE] = handle_next_due,
    [MSG_CLAIM] = handle_claim,
    [MSG_RECEIPT] = handle_receipt,
    [MSG_REFUSED] = handle_refused,
    [MSG_DEFER] = handle_defer,
    [MSG_IN_DOUBT] = handle_in_doubt,
    [MSG_LISTED] = handle_listed,
    [MSG_NEXT_SENDING] = handle_next_sending,
    [MSG_RENEWAL_HOLD] = handle_renewal_hold,
    [MSG_RENEWAL_HOLD_OF] = handle_renewal_hold_of,
    [MSG_BIND] = handle_bind,
    [MSG_CHECK_TOKEN] = handle_check_token,
    [MSG_GET_DISPATCH] = handle_get_dispatch,
    [MSG_ACK_DISPATCH] = handle_ack_dispatch,
    [MSG_COMPLETE_DISPATCH] = handle_complete_dispatch,
    [MSG_POST] = handle_post,
};

/* The one of this process. */
static struct {
	struct role role;
	struct ledger ledger;
	struct turn *turn;
	struct event *turn_event; /* at the end of this turn of the loop */
	struct event *idle_event;
	struct event *retention_event;
	struct retention retention;
	int64_t lines_lost;
} self;

/* ---- results of a turn ------------------------------------------------- */

static bool
line_offer(const char *text)
{
	struct msg m = {.type = MSG_LINE};

	m.line.text = text;
	return peer_notice_droppable(
	    self.role.supervisor, &m, LINES_QUEUED_MOST);
}

/* Lines never push back: what finds no room is counted, and that is told. */
static void
send_line(const char *text, void *arg)
{
	char lost[64];

	if (self.lines_lost != 0) {
		(void)snprintf(lost, sizeof(lost),
		    "{\"type\":\"lost\",\"n\":%" PRId64 "}", self.lines_lost);
		if (line_offer(lost))
			self.lines_lost = 0;
	}
	if (self.lines_lost != 0 || strlen(text) > LINE_BYTES_MOST ||
	    !line_offer(text))
		self.lines_lost++;
}

/* Written, not queued: nobody learns of a commit before its line left. */
static void
flush_lines(void *arg)
{
	struct link *link = peer_link(self.role.supervisor);

	if (link != NULL)
		link_flush(link);
}

/* An mcpd's peer may have made room for another's since it asked. */
static bool
peer_is_there(const struct peer *peer)
{
	size_t i;

	for (i = 0; i < self.role.peer_count; i++) {
		if (self.role.peers[i] == peer)
			return true;
	}
	return peer == self.role.supervisor;
}

/*
 * The supervisor has it before the guest does: should we die, it names the
 * attempt to our successor. False: it could not be told yet.
 */
static bool
guest_bind(struct peer *guest, const char *attempt)
{
	struct link *link = peer_link(self.role.supervisor);
	struct msg m = {.type = MSG_GUEST_BOUND};

	m.guest_bound.guest = peer_guest(guest);
	m.guest_bound.attempt = attempt;
	peer_notice(self.role.supervisor, &m);
	if (link == NULL)
		return false;
	link_flush(link);
	if (link_queued(link) != 0)
		return false;
	peer_bind(guest, attempt);
	return true;
}

static void
send_reply(const struct reply_to *to, struct msg *m, void *arg)
{
	struct frame f;
	struct error e;

	if (!peer_is_there(to->peer)) {
		if (frame_encode(m, &f, &e) == 0)
			frame_free(&f); /* with its descriptor */
	} else if (m->type == MSG_BOUND && peer_guest(to->peer) != 0 &&
	    !guest_bind(to->peer, m->bound.attempt)) {
		peer_fail(to, "unavailable", 0, "the supervisor is busy");
	} else {
		peer_reply(to, m);
	}
}

/* To the only role the table lets it go to; a task may have guests as well. */
static void
send_notice(const char *attempt, struct msg *m, void *arg)
{
	struct peer *peer;
	size_t i;

	for (i = 0; i < self.role.peer_count; i++) {
		peer = self.role.peers[i];
		if (msg_permitted(m->type, ROLE_LEDGER, peer_role(peer)) &&
		    strcmp(peer_attempt(peer), attempt) == 0)
			peer_notice(peer, m);
	}
}

static void
show_trouble(const char *text, void *arg)
{
	role_state(&self.role, "trouble", "%s", log_safe(text));
}

static void
commit_unknown(const char *text, void *arg)
{
	log_warnx("%s; whether it counts is read after a restart", text);
	role_exit(&self.role, EXIT_STORAGE);
}

static const struct turn_ops turn_ops = {send_line, flush_lines, send_reply,
    send_notice, show_trouble, commit_unknown};

/* ---- the loop ---------------------------------------------------------- */

static void
on_idle(evutil_socket_t fd, short what, void *arg)
{
	database_checkpoint(&self.ledger);
}

/* What was written grows the WAL: tended when there is nothing to do. */
static void
tend_wal(void)
{
	const struct timeval idle = {0, IDLE_MS * 1000};

	if (self.ledger.wal_bytes >= WAL_IDLE)
		(void)event_add(self.idle_event, &idle);
}

/* The only timer of an idle ledger, if content is to be dropped at all. */
static void
retention_wait(int64_t least_ms)
{
	int64_t ms = (self.retention.due_ns - clock_wall_ns()) / 1000000 + 1;
	struct timeval tv;

	(void)event_del(self.retention_event);
	if (self.retention.due_ns == INT64_MAX)
		return;
	if (ms < least_ms)
		ms = least_ms;
	tv.tv_sec = ms / 1000;
	tv.tv_usec = ms % 1000 * 1000;
	(void)event_add(self.retention_event, &tv);
}

/* A batch; the loop looks at what else waits before the next one. */
static void
on_retention(evutil_socket_t fd, short what, void *arg)
{
	if (retention_step(&self.ledger, &self.retention) == RETENTION_UNKNOWN)
		commit_unknown(self.ledger.error.text, NULL);
	if (self.ledger.wal_bytes >= WAL_MOST)
		database_checkpoint(&self.ledger);
	tend_wal();
	retention_wait(0);
}

static void
on_turn(evutil_socket_t fd, short what, void *arg)
{
	turn_run(self.turn);
	tend_wal();
	/* Timers stand still while a machine sleeps. */
	if (clock_wall_ns() >= self.retention.due_ns)
		retention_wait(0);
}

/* What its worker has reported before its end comes before its end. */
static void
hear_reports(const char *attempt)
{
	size_t i;

	for (i = 0; i < self.role.peer_count; i++) {
		if (peer_role(self.role.peers[i]) == ROLE_MCPD &&
		    strcmp(peer_attempt(self.role.peers[i]), attempt) == 0)
			peer_catch_up(self.role.peers[i]);
	}
}

/* Every request of every peer: into the turn that comes next. */
static void
receive(struct peer *peer, struct msg *m, void *arg)
{
	struct reply_to to = peer_reply_to(peer, m);

	if (m->type == MSG_END)
		hear_reports(m->end.attempt);
	else if (m->type == MSG_SETTLE)
		hear_reports(m->settle.attempt);
	turn_add(self.turn, m, peer_role(peer), peer_attempt(peer), &to);
	event_active(self.turn_event, 0, 0);
}

/* Filled from ledger_handlers: what has a handler is received. */
static peer_handler receivers[MSG_COUNT];
static const struct peer_ops peer_ops = {.handlers = receivers};

static void
receivers_fill(void)
{
	int type;

	for (type = 0; type < MSG_COUNT; type++) {
		if (ledger_handlers[type] != NULL)
			receivers[type] = receive;
	}
}

/* Who was told that its generation is stale asks again. */
static void
configured(struct role *role)
{
	struct msg m = {.type = MSG_WORK_WAITS};

	self.ledger.config = role->config;
	if (startable_configure(&self.ledger) == -1)
		fatalx("routes: %s", self.ledger.error.text);
	send_notice("", &m, NULL);
	if (retention_plan(&self.ledger, &self.retention) == -1)
		fatalx("retention: %s", self.ledger.error.text);
	retention_wait(IDLE_MS);
}

static void
stop(struct role *role, int64_t bound_ms)
{
	turn_run(self.turn);
	database_close(&self.ledger);
	role_exit(role, EXIT_OK);
}

static int
prepare(struct role *role, struct error *e)
{
	return database_process_init(e);
}

static const struct role_row row = {
    .role = ROLE_LEDGER,
    .title = "connectd-ledger",
    .nofile = 256,
    .writes_files = true,
    .sandbox = &ledger_profile,
    .prepare = prepare,
    .peers =
	{
	    [ROLE_SUPERVISOR] = &peer_ops,
	    [ROLE_DISPATCHER] = &peer_ops,
	    [ROLE_OUTBOX] = &peer_ops,
	    [ROLE_INTAKE] = &peer_ops,
	    [ROLE_MCPD] = &peer_ops,
	},
    .configured = configured,
    .stop = stop,
};

static void
tell_progress(const char *text, void *arg)
{
	role_starting(&self.role, "%s", text);
}

static void
open_database(void)
{
	const struct msg_setup *setup = &self.role.setup->setup;
	enum open_result result;
	struct error e;

	result = database_open(
	    &self.ledger, setup->state_dir, tell_progress, NULL, &e);
	if (result != OPEN_OK) {
		log_warnx("%s", e.text);
		role_exit(&self.role,
		    result == OPEN_FAILED ? EXIT_STORAGE : EXIT_CONFIG);
	}
	(void)snprintf(self.ledger.boot_id, sizeof(self.ledger.boot_id), "%s",
	    setup->boot_id);
	(void)snprintf(self.ledger.run_id, sizeof(self.ledger.run_id), "%s",
	    setup->run_id);
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		return inspect_main(argc, argv);
	receivers_fill();
	role_start(&self.role, &row, &self);
	open_database();
	self.turn = turn_new(&self.ledger, ledger_handlers, &turn_ops, NULL);
	self.turn_event = event_new(self.role.base, -1, 0, on_turn, NULL);
	self.idle_event = event_new(self.role.base, -1, 0, on_idle, NULL);
	self.retention_event = evtimer_new(self.role.base, on_retention, NULL);
	self.retention.due_ns = INT64_MAX;
	if (self.turn_event == NULL || self.idle_event == NULL ||
	    self.retention_event == NULL)
		fatalx("no event");
	role_ready(&self.role);
	role_run(&self.role);
}
