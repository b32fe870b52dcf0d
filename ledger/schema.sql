-- ledger.db, schema version 1 (ledger.md 1 and 2).
--
-- Every timestamp is TEXT, UTC, YYYY-MM-DDTHH:MM:SS.nnnnnnnnnZ, so that the
-- order of the text is the order of time. Booleans are INTEGER 0 or 1.
--
-- The triggers hold this program's own writes to the lifecycle: what no edge of
-- a machine (docs/lifecycle.md) allows, the tables refuse. Each refusal is
-- RAISE(ABORT): it undoes its statement and nothing else, so that one request
-- of a group may fail alone. RAISE(IGNORE) leaves the row that is there as it
-- is.
--
-- OR REPLACE deletes the rows in its way and runs no trigger of theirs. So no
-- row of any table may come to stand in the way of another: the triggers named
-- *_begin_* look at every unique key before a row is born, those named *_keep_*
-- hold what never changes, and the few keys that do are looked at where they
-- change. The names that SQLite has for an integer key besides its column's are
-- named with it (OF may name what is no column); a table whose key is none is
-- WITHOUT ROWID, so that it has no hidden one. Such a trigger runs before ON
-- CONFLICT is thought of, too: what may be there already is changed by an
-- UPDATE, and put there by an INSERT if that found nothing. And OR REPLACE puts
-- a column's default in the place of a NULL behind these triggers' back: what
-- they ask of such a column they ask with IS, or of NULL as well.

CREATE TABLE schema_migrations (
	version INTEGER PRIMARY KEY,
	applied_at TEXT NOT NULL
);

CREATE TRIGGER schema_migrations_begin_once
BEFORE INSERT ON schema_migrations
WHEN EXISTS (SELECT 1 FROM schema_migrations WHERE version = NEW.version)
BEGIN
	SELECT RAISE(ABORT, 'a migration is noted once');
END;

CREATE TRIGGER schema_migrations_keep_apart
BEFORE UPDATE OF version, rowid, oid, _rowid_ ON schema_migrations
WHEN NEW.version IS NOT OLD.version
AND EXISTS (SELECT 1 FROM schema_migrations WHERE version = NEW.version)
BEGIN
	SELECT RAISE(ABORT, 'a migration is noted once');
END;

-- ---- records -------------------------------------------------------------

-- One row for each event id of the feed, for ever: what dedupes the feed.
CREATE TABLE events (
	id INTEGER PRIMARY KEY,			-- the feed's own
	-- seen admitted queued blocked dispatched completed discarded held
	state TEXT NOT NULL,
	-- why: blocked and discarded always have one, held may
	reason TEXT NOT NULL DEFAULT '',
	lane TEXT NOT NULL,			-- poll live repair import
	event_type TEXT NOT NULL,
	kind TEXT NOT NULL,
	action TEXT NOT NULL,
	bucket_id INTEGER NOT NULL,		-- the project
	creator_id INTEGER NOT NULL,
	performed_by_id INTEGER,
	recording_id INTEGER NOT NULL,
	details BLOB CHECK (details IS NULL OR length(details) > 0),
	actor_type TEXT NOT NULL DEFAULT '',
	visible_to_clients INTEGER,		-- NULL: not said
	created_at TEXT NOT NULL,		-- the event's own time
	seen_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,		-- last change of state
	content_dropped INTEGER NOT NULL DEFAULT 0,
	revision INTEGER NOT NULL DEFAULT 0,	-- one more at each state write
	decided_at TEXT,
	blocked_at TEXT,			-- into this run of blocked states
	retry_at TEXT,				-- a server's "not before"
	retry_since TEXT,			-- into the present reason
	next_retry_at TEXT,			-- NULL: no retry is owed
	trigger_name TEXT NOT NULL DEFAULT '',
	acknowledge INTEGER NOT NULL DEFAULT 0,
	conversation_key TEXT NOT NULL DEFAULT '',
	reply_kind TEXT NOT NULL DEFAULT '',	-- comment chat_line
	reply_recording_id INTEGER NOT NULL DEFAULT 0,
	routed INTEGER NOT NULL DEFAULT 0,
	route TEXT NOT NULL DEFAULT '',		-- the approved directory
	class TEXT NOT NULL DEFAULT '',
	recording_url TEXT NOT NULL DEFAULT '',
	requester_id INTEGER NOT NULL DEFAULT 0,
	snapshot BLOB,				-- bytes of intake, for mcpd
	generation INTEGER NOT NULL DEFAULT 0,	-- of holds, when it came
	review INTEGER NOT NULL DEFAULT 0,	-- a hold tagged it
	authorized_at TEXT,
	authorized_by TEXT NOT NULL DEFAULT '',
	-- a redispatch that waits for the record's task to end
	redispatch_decision INTEGER REFERENCES decisions (id),
	-- deaths of a process with this record in hand, and the last one's id
	quarantine INTEGER NOT NULL DEFAULT 0,
	quarantine_death TEXT NOT NULL DEFAULT ''
);
CREATE INDEX events_state ON events (state, id);
CREATE INDEX events_conversation ON events (conversation_key, state);
CREATE INDEX events_review ON events (review, state);
-- Whose content is still there, by how long ago they ended.
CREATE INDEX events_discarded ON events (updated_at)
    WHERE state = 'discarded' AND content_dropped = 0;
CREATE INDEX events_completed ON events (updated_at)
    WHERE state = 'completed' AND content_dropped = 0;
CREATE INDEX events_retry ON events (state, next_retry_at);
CREATE INDEX events_redispatch ON events (redispatch_decision)
    WHERE redispatch_decision IS NOT NULL;

-- ---- the feed ------------------------------------------------------------

CREATE TABLE checkpoints (
	flat_key TEXT NOT NULL PRIMARY KEY,
	lineage TEXT NOT NULL,
	position TEXT NOT NULL,			-- '': the feed refused it
	last_poll_served_id INTEGER NOT NULL DEFAULT 0
	    CHECK (typeof(last_poll_served_id) = 'integer'), -- text is greatest
	run_id TEXT NOT NULL DEFAULT '',	-- whose position it is
	updated_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX checkpoints_lineage ON checkpoints (lineage);

CREATE TABLE losses (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	nonce TEXT UNIQUE,			-- the request's, for a repeat
	detected_at TEXT NOT NULL,
	dropped_count INTEGER NOT NULL,
	repair_since INTEGER NOT NULL,
	repair_cursor TEXT NOT NULL DEFAULT '',
	deadline_at TEXT NOT NULL,
	resolved_at TEXT,
	filters TEXT NOT NULL DEFAULT ''
);
CREATE INDEX losses_open ON losses (id) WHERE resolved_at IS NULL;

CREATE TABLE loss_ids (
	loss_id INTEGER NOT NULL REFERENCES losses (id) ON DELETE CASCADE,
	event_id INTEGER NOT NULL,
	state TEXT NOT NULL CHECK (state IN
	    ('missing', 'never_lost', 'recovered', 'unrecovered')),
	PRIMARY KEY (loss_id, event_id)
) WITHOUT ROWID;
CREATE INDEX loss_ids_event ON loss_ids (event_id, state);

CREATE TABLE gaps (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	nonce TEXT UNIQUE,
	detected_at TEXT NOT NULL,
	class TEXT NOT NULL CHECK (class IN ('epoch', 'retention')),
	epoch_after_id INTEGER,
	entry_class TEXT NOT NULL DEFAULT '' CHECK (entry_class IN
	    ('', 'present', 'replay', 'unknown')),
	note TEXT NOT NULL DEFAULT '',
	CHECK ((class = 'epoch') = (epoch_after_id IS NOT NULL))
);

-- ---- tasks ---------------------------------------------------------------

-- Two notions of live: the token's (superseded_at) and the work's (ended_at).
CREATE TABLE tasks (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	token_sha256 TEXT NOT NULL UNIQUE,
	rekeys INTEGER NOT NULL DEFAULT 0,	-- tokens minted after the first
	taken_at TEXT,				-- an operator has the token since
	created_at TEXT NOT NULL,
	superseded_at TEXT,
	conversation_key TEXT NOT NULL DEFAULT '',
	route TEXT NOT NULL DEFAULT '',
	work_dir TEXT NOT NULL DEFAULT '',
	driver TEXT NOT NULL DEFAULT '',
	originating_event_id INTEGER,
	deadline_at TEXT,
	ended_at TEXT
);
CREATE UNIQUE INDEX tasks_live_conversation ON tasks (conversation_key)
    WHERE ended_at IS NULL AND conversation_key <> '';
CREATE UNIQUE INDEX tasks_live_work_dir ON tasks (work_dir)
    WHERE ended_at IS NULL AND work_dir <> '';

CREATE TABLE task_events (
	task_id INTEGER NOT NULL REFERENCES tasks (id),
	event_id INTEGER NOT NULL REFERENCES events (id),
	-- a copy: retention clears the record's own
	conversation_key TEXT NOT NULL DEFAULT '',
	delivery TEXT NOT NULL DEFAULT 'admitted' CHECK (delivery IN
	    ('admitted', 'exposed', 'delivered', 'completed')),
	guard TEXT NOT NULL DEFAULT '' CHECK (guard IN
	    ('', 'armed', 'canceled', 'fired')),
	exposed_at TEXT,
	delivered_at TEXT,
	completed_at TEXT,
	ack_id INTEGER,
	outcome TEXT NOT NULL DEFAULT '' CHECK (outcome IN
	    ('', 'succeeded', 'failed', 'unknown')),
	links TEXT NOT NULL DEFAULT '[]',
	reply_id INTEGER,
	retired_at TEXT,
	pulled_at TEXT,
	withdrawn_at TEXT,
	uncharged INTEGER NOT NULL DEFAULT 0,	-- a withdrawal that costs no retry
	exposed_attempt_id TEXT,
	adopted_reply_id INTEGER,
	PRIMARY KEY (task_id, event_id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX task_events_live_event ON task_events (event_id)
    WHERE retired_at IS NULL;
CREATE INDEX task_events_event ON task_events (event_id, delivery);
CREATE INDEX task_events_live_conversation ON task_events
    (conversation_key, task_id) WHERE retired_at IS NULL;

-- A process is known by pid and started_ticks within boot_id.
CREATE TABLE attempts (
	id TEXT PRIMARY KEY NOT NULL,		-- att_ and 24 hex digits
	task_id INTEGER NOT NULL REFERENCES tasks (id),
	seq INTEGER NOT NULL,
	driver TEXT NOT NULL,
	state TEXT NOT NULL CHECK (state IN ('launching', 'running', 'ended')),
	pid INTEGER,
	pgid INTEGER,
	started_ticks INTEGER,			-- the kernel's start time
	boot_id TEXT NOT NULL DEFAULT '',
	run_id TEXT NOT NULL DEFAULT '',	-- the supervisor's life
	containment TEXT NOT NULL DEFAULT '',	-- 'cgroup:...'
	session_id TEXT NOT NULL DEFAULT '',
	launched_at TEXT NOT NULL,
	running_at TEXT,
	ended_at TEXT,
	stop_reason TEXT NOT NULL DEFAULT '' CHECK (stop_reason IN
	    ('', 'finished', 'failed', 'deadline', 'shutdown', 'lost')),
	spawn_failed INTEGER NOT NULL DEFAULT 0, -- proved: no process existed
	no_retry INTEGER NOT NULL DEFAULT 0,	-- and none will come of another
	refusals INTEGER NOT NULL DEFAULT 0,
	progress_at TEXT,
	still_running INTEGER NOT NULL DEFAULT 0,
	UNIQUE (task_id, seq),
	CHECK ((state = 'ended') = (stop_reason <> ''))
) WITHOUT ROWID;
CREATE UNIQUE INDEX attempts_live ON attempts (task_id)
    WHERE state <> 'ended';
CREATE INDEX attempts_state ON attempts (state);
CREATE INDEX attempts_launched ON attempts (launched_at DESC, id);

-- ---- messages ------------------------------------------------------------

CREATE TABLE outbox (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	intent_key TEXT NOT NULL UNIQUE,
	kind TEXT NOT NULL CHECK (kind IN ('guard_ack', 'holding_reply',
	    'still_running', 'completion', 'retraction', 'worker_ack',
	    'worker_reply')),
	state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending',
	    'sending', 'sent', 'indeterminate', 'canceled', 'abandoned')),
	event_id INTEGER REFERENCES events (id),
	task_id INTEGER REFERENCES tasks (id),
	attempt_id TEXT REFERENCES attempts (id),
	occurrence INTEGER NOT NULL DEFAULT 0,
	answers_reason TEXT NOT NULL DEFAULT '', -- a holding reply's
	argument_sha256 TEXT NOT NULL DEFAULT '', -- a worker's raw argument
	bucket_id INTEGER NOT NULL,
	message_kind TEXT NOT NULL CHECK (message_kind IN
	    ('boost', 'comment', 'chat_line')),
	recording_id INTEGER NOT NULL CHECK (recording_id > 0),
	body TEXT NOT NULL CHECK (body <> ''),
	created_at TEXT NOT NULL,
	not_before TEXT NOT NULL,
	nonce TEXT UNIQUE,			-- of the claim
	sending_at TEXT,
	finished_at TEXT,
	receipt_id INTEGER,			-- Basecamp's id of the message
	refused INTEGER NOT NULL DEFAULT 0,	-- by Basecamp: nothing created
	note TEXT NOT NULL DEFAULT '',
	resolved_by TEXT NOT NULL DEFAULT '',
	reconcile_failures INTEGER NOT NULL DEFAULT 0,
	reconcile_at TEXT,
	retracts INTEGER REFERENCES outbox (id),
	CHECK ((state = 'sent') = (receipt_id IS NOT NULL)),
	CHECK (state IN ('pending', 'canceled') OR sending_at IS NOT NULL),
	CHECK (refused = 0 OR state = 'canceled'),
	CHECK ((kind = 'retraction') = (retracts IS NOT NULL)),
	CHECK ((kind IN ('worker_ack', 'worker_reply')) =
	    (argument_sha256 <> ''))
);
CREATE UNIQUE INDEX outbox_receipt ON outbox (message_kind, receipt_id)
    WHERE receipt_id IS NOT NULL;
CREATE INDEX outbox_due ON outbox (state, not_before);
CREATE INDEX outbox_destination ON outbox (message_kind, recording_id, state);
CREATE INDEX outbox_event ON outbox (event_id, kind);
CREATE INDEX outbox_retracts ON outbox (retracts) WHERE retracts IS NOT NULL;

-- The token endpoint's "not before", by the credential it was said to.
CREATE TABLE renewal_holds (
	fingerprint TEXT NOT NULL PRIMARY KEY,
	reason TEXT NOT NULL CHECK (reason <> ''),
	until TEXT NOT NULL DEFAULT '',		-- '': for ever
	updated_at TEXT NOT NULL
) WITHOUT ROWID;

-- ---- holds and decisions -------------------------------------------------

CREATE TABLE generations (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	cause TEXT NOT NULL CHECK (cause IN ('hold', 'shadow_promote')),
	opened_by TEXT NOT NULL CHECK (opened_by <> ''),
	opened_at TEXT NOT NULL
);

CREATE TABLE hold_marker (
	id INTEGER PRIMARY KEY CHECK (id = 1),
	generation INTEGER NOT NULL REFERENCES generations (id),
	cause TEXT NOT NULL CHECK (cause IN ('hold', 'shadow_promote')),
	held_by TEXT NOT NULL CHECK (held_by <> ''),
	held_at TEXT NOT NULL
);

CREATE TABLE decisions (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	nonce TEXT UNIQUE,			-- connectctl's, for a repeat
	action TEXT NOT NULL CHECK (action IN ('hold', 'release', 'redispatch',
	    'discard', 'shadow_promote', 'import', 'resolve', 'settle')),
	event_id INTEGER,			-- NULL: of no single record
	intent_id INTEGER REFERENCES outbox (id),	-- resolve
	attempt_id TEXT REFERENCES attempts (id),	-- settle
	decided_by TEXT NOT NULL CHECK (decided_by <> ''),
	decided_at TEXT NOT NULL,
	from_state TEXT NOT NULL DEFAULT '',
	from_reason TEXT NOT NULL DEFAULT '',
	from_outcome TEXT NOT NULL DEFAULT '',
	to_state TEXT NOT NULL DEFAULT '',
	superseded_task_id INTEGER,
	note TEXT NOT NULL DEFAULT '',
	CHECK ((action = 'resolve') = (intent_id IS NOT NULL)),
	CHECK ((action = 'settle') = (attempt_id IS NOT NULL))
);
CREATE INDEX decisions_event ON decisions (event_id, id);

-- What the last run said of itself; a crash leaves its last word.
CREATE TABLE connection (
	id INTEGER PRIMARY KEY CHECK (id = 1),
	state TEXT NOT NULL,
	pid INTEGER NOT NULL,
	changed_at TEXT NOT NULL,
	detail TEXT NOT NULL DEFAULT ''
);

-- The last night's clearing of what ended long ago.
CREATE TABLE retention (
	id INTEGER PRIMARY KEY CHECK (id = 1),
	ran_at TEXT NOT NULL,
	cleared INTEGER NOT NULL		-- records
);

-- ---- what holds records --------------------------------------------------

-- A record's last word is the row of its newest task that was not withdrawn.
CREATE VIEW latest_rows AS
SELECT t.event_id, t.task_id, t.outcome, t.completed_at
FROM task_events t
WHERE t.withdrawn_at IS NULL AND t.task_id = (SELECT MAX(o.task_id)
    FROM task_events o
    WHERE o.event_id = t.event_id AND o.withdrawn_at IS NULL);

-- A record begins seen; only an import's tombstone begins where it ends. What
-- the feed serves again leaves a known id as it is.
CREATE TRIGGER events_begin_seen
BEFORE INSERT ON events
WHEN NEW.state IS NOT 'seen' AND NOT (NEW.state IS 'discarded'
    AND NEW.reason IS 'imported_done' AND NEW.lane IS 'import'
    AND NEW.content_dropped IS 1)
OR EXISTS (SELECT 1 FROM events WHERE id = NEW.id)
BEGIN
	SELECT CASE WHEN EXISTS (SELECT 1 FROM events WHERE id = NEW.id)
	    THEN RAISE(IGNORE) ELSE RAISE(ABORT, 'a record begins seen') END;
END;

-- Whoever asks: a person's edges are among them. What is final is below. A
-- name is one word of its list: neither two of them, nor bytes that look so.
CREATE TRIGGER events_state_edges
BEFORE UPDATE OF state ON events
WHEN NEW.state IS NOT OLD.state
AND OLD.state NOT IN ('completed', 'discarded')
AND (typeof(NEW.state) <> 'text' OR instr(NEW.state, ' ')
OR instr(CASE OLD.state
    WHEN 'seen' THEN ' admitted queued blocked discarded '
    WHEN 'admitted' THEN ' queued blocked dispatched discarded held '
    WHEN 'queued' THEN ' blocked dispatched discarded held '
    WHEN 'blocked' THEN ' admitted queued dispatched discarded '
    WHEN 'dispatched' THEN ' admitted blocked completed '
    WHEN 'held' THEN ' admitted queued blocked discarded '
    ELSE '' END, ' ' || NEW.state || ' ') = 0)
BEGIN
	SELECT RAISE(ABORT, 'a record does not move so');
END;

CREATE TRIGGER events_keep_their_id
BEFORE UPDATE OF id, rowid, oid, _rowid_ ON events
WHEN NEW.id IS NOT OLD.id
BEGIN
	SELECT RAISE(ABORT, 'a record keeps its id');
END;

CREATE TRIGGER events_are_not_deleted
BEFORE DELETE ON events
BEGIN
	SELECT RAISE(ABORT, 'a known id stays known');
END;

-- Completed and discarded are the end, but for a person's three ways out.
CREATE TRIGGER events_terminal_is_terminal
BEFORE UPDATE OF state ON events
WHEN OLD.state IN ('completed', 'discarded') AND NEW.state IS NOT OLD.state
AND NOT (OLD.state = 'completed' AND NEW.state = 'admitted'
    AND OLD.redispatch_decision IS NOT NULL
    AND NEW.redispatch_decision IS NULL
    AND NEW.content_dropped = 0 AND COALESCE(length(NEW.snapshot), 0) > 0
    AND EXISTS (SELECT 1 FROM latest_rows t, decisions d
	WHERE t.event_id = OLD.id AND t.outcome IN ('unknown', 'failed')
	AND d.id = OLD.redispatch_decision AND d.event_id = OLD.id
	AND d.action = 'redispatch' AND d.decided_at >= t.completed_at))
AND NOT (OLD.state = 'completed' AND NEW.state = 'discarded'
    AND NEW.reason IS 'by_operator'
    AND EXISTS (SELECT 1 FROM latest_rows t, decisions d
	WHERE t.event_id = OLD.id AND t.outcome = 'unknown'
	AND d.event_id = OLD.id AND d.action = 'discard'
	AND d.decided_at >= t.completed_at))
AND NOT (OLD.state = 'completed' AND NEW.state = 'discarded'
    AND NEW.reason IS 'imported_done'
    AND EXISTS (SELECT 1 FROM latest_rows t, decisions d
	WHERE t.event_id = OLD.id AND t.outcome IN ('unknown', 'failed')
	AND d.event_id = OLD.id AND d.action = 'import'
	AND d.decided_at >= t.completed_at))
BEGIN
	SELECT RAISE(ABORT, 'a terminal record does not move');
END;

-- What a worker may have seen ends in an outcome; it is never started again.
CREATE TRIGGER events_handed_work_settles_first
BEFORE UPDATE OF state ON events
WHEN OLD.state = 'dispatched' AND NEW.state NOT IN ('dispatched', 'completed')
AND EXISTS (SELECT 1 FROM task_events t WHERE t.event_id = OLD.id
    AND t.delivery IN ('exposed', 'delivered') AND t.withdrawn_at IS NULL)
BEGIN
	SELECT RAISE(ABORT, 'a worker was handed this record');
END;

CREATE TRIGGER events_dispatched_while_on_a_live_task
BEFORE UPDATE OF state ON events
WHEN NEW.state IS NOT OLD.state
AND (NEW.state = 'dispatched' AND NOT EXISTS (SELECT 1 FROM task_events t
	WHERE t.event_id = OLD.id AND t.retired_at IS NULL)
    OR OLD.state = 'dispatched' AND NEW.state IS NOT 'completed'
    AND EXISTS (SELECT 1 FROM task_events t
	WHERE t.event_id = OLD.id AND t.retired_at IS NULL))
BEGIN
	SELECT RAISE(ABORT, 'dispatched is what a live task carries');
END;

-- What a worker may still be told is kept; a tombstone stays one.
CREATE TRIGGER events_content_goes_after_the_end
BEFORE UPDATE OF content_dropped ON events
WHEN NEW.content_dropped IS NOT OLD.content_dropped
AND (OLD.content_dropped = 1 OR OLD.state NOT IN ('completed', 'discarded')
    OR OLD.redispatch_decision IS NOT NULL)
BEGIN
	SELECT RAISE(ABORT, 'content goes once, after the end');
END;

CREATE TRIGGER events_generation
AFTER INSERT ON events
WHEN NEW.generation IS NOT COALESCE((SELECT MAX(id) FROM generations), 0)
BEGIN
	UPDATE events
	SET generation = COALESCE((SELECT MAX(id) FROM generations), 0)
	WHERE id = NEW.id;
END;

-- A tagged record that nobody authorized is held wherever it would wait.
CREATE TRIGGER events_review_is_held
AFTER UPDATE OF state, review, authorized_at ON events
WHEN NEW.state IN ('admitted', 'queued') AND NEW.review = 1
AND NEW.authorized_at IS NULL
BEGIN
	UPDATE events
	SET state = 'held', reason = '', revision = revision + 1,
	    updated_at = CASE WHEN NEW.state IS OLD.state
		THEN strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000000Z'
		ELSE updated_at END
	WHERE id = NEW.id;
END;

CREATE TRIGGER events_held_cancels_guard
AFTER UPDATE OF state ON events
WHEN NEW.state = 'held' AND OLD.state IS NOT 'held'
BEGIN
	UPDATE outbox
	SET state = 'canceled', note = 'held',
	    finished_at = strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000000Z'
	WHERE event_id = NEW.id AND kind = 'guard_ack' AND state = 'pending';
END;

-- ---- what holds tasks ----------------------------------------------------

CREATE TRIGGER tasks_begin_live
BEFORE INSERT ON tasks
WHEN NEW.superseded_at IS NOT NULL OR NEW.ended_at IS NOT NULL
OR EXISTS (SELECT 1 FROM tasks WHERE id = NEW.id)
OR EXISTS (SELECT 1 FROM tasks WHERE token_sha256 = NEW.token_sha256)
OR EXISTS (SELECT 1 FROM tasks WHERE ended_at IS NULL
    AND conversation_key <> '' AND conversation_key = NEW.conversation_key)
OR EXISTS (SELECT 1 FROM tasks WHERE ended_at IS NULL
    AND work_dir <> '' AND work_dir = NEW.work_dir)
BEGIN
	SELECT RAISE(ABORT, 'a task begins live, in no other''s place');
END;

CREATE TRIGGER tasks_keep_their_place
BEFORE UPDATE OF id, rowid, oid, _rowid_, conversation_key, work_dir
ON tasks
WHEN NEW.id IS NOT OLD.id
OR NEW.conversation_key IS NOT OLD.conversation_key
OR NEW.work_dir IS NOT OLD.work_dir
BEGIN
	SELECT RAISE(ABORT, 'a task keeps its conversation and its directory');
END;

CREATE TRIGGER tasks_are_not_deleted
BEFORE DELETE ON tasks
BEGIN
	SELECT RAISE(ABORT, 'a task stays recorded');
END;

CREATE TRIGGER tasks_supersession_is_final
BEFORE UPDATE OF superseded_at ON tasks
WHEN OLD.superseded_at IS NOT NULL
AND NEW.superseded_at IS NOT OLD.superseded_at
BEGIN
	SELECT RAISE(ABORT, 'supersession is final');
END;

CREATE TRIGGER tasks_supersession_retires_its_events
AFTER UPDATE OF superseded_at ON tasks
WHEN OLD.superseded_at IS NULL AND NEW.superseded_at IS NOT NULL
BEGIN
	UPDATE task_events SET retired_at = NEW.superseded_at
	WHERE task_id = NEW.id AND retired_at IS NULL;
END;

CREATE TRIGGER tasks_end_supersedes
BEFORE UPDATE OF ended_at ON tasks
WHEN NEW.ended_at IS NOT NULL AND NEW.superseded_at IS NULL
BEGIN
	SELECT RAISE(ABORT, 'a task ends superseded');
END;

CREATE TRIGGER tasks_end_is_final
BEFORE UPDATE OF ended_at ON tasks
WHEN OLD.ended_at IS NOT NULL AND NEW.ended_at IS NOT OLD.ended_at
BEGIN
	SELECT RAISE(ABORT, 'the end of a task is final');
END;

-- Only a live task of a live attempt gets another token, and nobody's.
CREATE TRIGGER tasks_token_moves_by_rekey
BEFORE UPDATE OF token_sha256 ON tasks
WHEN NEW.token_sha256 IS NOT OLD.token_sha256
AND (OLD.superseded_at IS NOT NULL OR NEW.superseded_at IS NOT NULL
    OR OLD.ended_at IS NOT NULL OR NEW.ended_at IS NOT NULL
    OR NOT EXISTS (SELECT 1 FROM attempts a
	WHERE a.task_id = OLD.id AND a.state <> 'ended')
    OR EXISTS (SELECT 1 FROM tasks WHERE token_sha256 = NEW.token_sha256))
BEGIN
	SELECT RAISE(ABORT, 'only a live attempt is re-keyed');
END;

CREATE TRIGGER tasks_taken_is_final
BEFORE UPDATE OF taken_at ON tasks
WHEN OLD.taken_at IS NOT NULL AND NEW.taken_at IS NOT OLD.taken_at
BEGIN
	SELECT RAISE(ABORT, 'a task that was taken over stays so');
END;

-- A redispatch that waited for this end. What cannot be applied any more
-- stays completed, and waits no more: it must not hinder the end.
CREATE TRIGGER tasks_end_applies_redispatch
AFTER UPDATE OF ended_at ON tasks
WHEN OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL
BEGIN
	UPDATE events
	SET state = 'admitted', reason = '', redispatch_decision = NULL,
	    revision = revision + 1, updated_at = NEW.ended_at,
	    blocked_at = NULL, retry_at = NULL, retry_since = NULL,
	    next_retry_at = NULL
	WHERE state = 'completed' AND redispatch_decision IS NOT NULL
	AND content_dropped = 0 AND length(snapshot) > 0
	AND id IN (SELECT event_id FROM task_events WHERE task_id = NEW.id)
	AND EXISTS (SELECT 1 FROM latest_rows t, decisions d
	    WHERE t.event_id = events.id
	    AND t.outcome IN ('unknown', 'failed')
	    AND d.id = events.redispatch_decision AND d.event_id = events.id
	    AND d.action = 'redispatch' AND d.decided_at >= t.completed_at);
	UPDATE events SET redispatch_decision = NULL
	WHERE state = 'completed' AND redispatch_decision IS NOT NULL
	AND id IN (SELECT event_id FROM task_events WHERE task_id = NEW.id);
END;

-- ---- what holds the events on a task -------------------------------------

CREATE TRIGGER task_events_join_live_tasks_only
BEFORE INSERT ON task_events
WHEN EXISTS (SELECT 1 FROM tasks
    WHERE id = NEW.task_id AND superseded_at IS NOT NULL)
OR NOT EXISTS (SELECT 1 FROM events WHERE id = NEW.event_id
    AND state IN ('admitted', 'queued', 'dispatched'))
BEGIN
	SELECT RAISE(ABORT, 'only waiting records join, and only live tasks');
END;

CREATE TRIGGER task_events_begin_admitted
BEFORE INSERT ON task_events
WHEN NEW.delivery <> 'admitted' OR NEW.guard NOT IN ('', 'armed')
OR COALESCE(NEW.pulled_at, NEW.withdrawn_at, NEW.retired_at) IS NOT NULL
OR EXISTS (SELECT 1 FROM task_events t WHERE t.event_id = NEW.event_id
    AND (t.retired_at IS NULL OR t.task_id = NEW.task_id))
BEGIN
	SELECT RAISE(ABORT, 'a row begins unseen, its guard unsettled');
END;

CREATE TRIGGER task_events_one_live_task_per_conversation
BEFORE INSERT ON task_events
WHEN NEW.retired_at IS NULL AND NEW.conversation_key <> ''
AND EXISTS (SELECT 1 FROM task_events t
    WHERE t.conversation_key = NEW.conversation_key
    AND t.retired_at IS NULL AND t.task_id < NEW.task_id
    UNION ALL SELECT 1 FROM task_events t
    WHERE t.conversation_key = NEW.conversation_key
    AND t.retired_at IS NULL AND t.task_id > NEW.task_id)
BEGIN
	SELECT RAISE(ABORT, 'another task has this conversation');
END;

CREATE TRIGGER task_events_conversation_does_not_move
BEFORE UPDATE OF conversation_key ON task_events
WHEN NEW.conversation_key IS NOT OLD.conversation_key
BEGIN
	SELECT RAISE(ABORT, 'a row keeps its conversation');
END;

CREATE TRIGGER task_events_do_not_move
BEFORE UPDATE OF task_id, event_id ON task_events
WHEN NEW.task_id IS NOT OLD.task_id OR NEW.event_id IS NOT OLD.event_id
BEGIN
	SELECT RAISE(ABORT, 'a row keeps its task and its event');
END;

CREATE TRIGGER task_events_are_not_deleted
BEFORE DELETE ON task_events
BEGIN
	SELECT RAISE(ABORT, 'what was on a task stays recorded');
END;

CREATE TRIGGER task_events_retirement_follows_supersession
BEFORE UPDATE OF retired_at ON task_events
WHEN NEW.retired_at IS NOT OLD.retired_at
AND (OLD.retired_at IS NOT NULL OR NEW.retired_at IS NULL
    OR NOT EXISTS (SELECT 1 FROM tasks
	WHERE id = OLD.task_id AND superseded_at IS NOT NULL))
BEGIN
	SELECT RAISE(ABORT, 'a row retires once, with its task');
END;

CREATE TRIGGER task_events_delivery_moves_forward
BEFORE UPDATE OF delivery ON task_events
WHEN NEW.delivery IS NULL
OR (CASE NEW.delivery WHEN 'admitted' THEN 0 WHEN 'exposed' THEN 1
    WHEN 'delivered' THEN 2 ELSE 3 END)
< (CASE OLD.delivery WHEN 'admitted' THEN 0 WHEN 'exposed' THEN 1
    WHEN 'delivered' THEN 2 ELSE 3 END)
BEGIN
	SELECT RAISE(ABORT, 'delivery never goes back');
END;

-- A worker reports what it pulled. The settlement writes the record first.
CREATE TRIGGER task_events_exposure_comes_first
BEFORE UPDATE OF delivery ON task_events
WHEN NEW.delivery IS NOT OLD.delivery
AND (OLD.delivery = 'admitted' AND NEW.delivery IN ('delivered', 'completed')
    OR NEW.delivery = 'delivered' AND OLD.pulled_at IS NULL
    OR NEW.delivery = 'completed' AND OLD.pulled_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM events
	WHERE id = OLD.event_id AND state = 'completed'))
BEGIN
	SELECT RAISE(ABORT, 'only pulled work is reported');
END;

CREATE TRIGGER task_events_withdrawn_is_final
BEFORE UPDATE OF delivery ON task_events
WHEN NEW.delivery IS NOT OLD.delivery
AND (OLD.withdrawn_at IS NOT NULL OR NEW.withdrawn_at IS NOT NULL)
BEGIN
	SELECT RAISE(ABORT, 'a withdrawn row does not move');
END;

CREATE TRIGGER task_events_pull_is_recorded_once
BEFORE UPDATE OF pulled_at ON task_events
WHEN NEW.pulled_at IS NOT OLD.pulled_at
AND (OLD.pulled_at IS NOT NULL
    OR OLD.delivery <> 'exposed' OR NEW.delivery <> 'exposed'
    OR OLD.retired_at IS NOT NULL OR NEW.retired_at IS NOT NULL
    OR OLD.withdrawn_at IS NOT NULL OR NEW.withdrawn_at IS NOT NULL)
BEGIN
	SELECT RAISE(ABORT, 'a pull is recorded once, of exposed work');
END;

CREATE TRIGGER task_events_withdrawal_is_for_a_failed_spawn
BEFORE UPDATE OF withdrawn_at ON task_events
WHEN NEW.withdrawn_at IS NOT OLD.withdrawn_at
AND (OLD.withdrawn_at IS NOT NULL
    OR OLD.delivery <> 'exposed' OR NEW.delivery <> 'exposed'
    OR OLD.pulled_at IS NOT NULL OR NEW.pulled_at IS NOT NULL
    OR NOT EXISTS (SELECT 1 FROM tasks
	WHERE id = OLD.task_id AND superseded_at IS NOT NULL)
    OR EXISTS (SELECT 1 FROM task_events t
	WHERE t.event_id = OLD.event_id AND t.retired_at IS NULL))
BEGIN
	SELECT RAISE(ABORT, 'only what no worker saw is withdrawn');
END;

CREATE TRIGGER task_events_guard_settles_once
BEFORE UPDATE OF guard ON task_events
WHEN NEW.guard IS NOT OLD.guard
AND NOT (OLD.guard = 'armed'
    AND (NEW.guard IS 'canceled' OR NEW.guard IS 'fired'))
BEGIN
	SELECT RAISE(ABORT, 'a guard settles once');
END;

CREATE TRIGGER task_events_acknowledgement_settles_once
BEFORE UPDATE OF ack_id ON task_events
WHEN NEW.ack_id IS NOT OLD.ack_id
AND NOT (OLD.ack_id IS NULL AND OLD.delivery = 'exposed'
    AND NEW.delivery = 'delivered')
BEGIN
	SELECT RAISE(ABORT, 'an acknowledgement is named once');
END;

-- It is a link beside an outcome, never one itself.
CREATE TRIGGER task_events_adoption_is_beside_unknown
BEFORE UPDATE OF adopted_reply_id ON task_events
WHEN NEW.adopted_reply_id IS NOT OLD.adopted_reply_id
AND (OLD.adopted_reply_id IS NOT NULL OR NEW.outcome IS NOT 'unknown'
    OR NEW.delivered_at IS NULL OR NEW.reply_id IS NOT NULL)
BEGIN
	SELECT RAISE(ABORT, 'a reply is adopted once, for unknown work');
END;

CREATE TRIGGER outbox_guard_canceled_by_get_dispatch
AFTER UPDATE OF guard ON task_events
WHEN OLD.guard = 'armed' AND NEW.guard = 'canceled'
BEGIN
	UPDATE outbox
	SET state = 'canceled', note = 'get_dispatch',
	    finished_at = strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000000Z'
	WHERE event_id = NEW.event_id AND kind = 'guard_ack'
	AND state = 'pending';
END;

-- It may stand in Basecamp already: the worker is told so.
CREATE TRIGGER outbox_guard_fired_before_task
AFTER INSERT ON task_events
WHEN NEW.guard = 'armed' AND EXISTS (SELECT 1 FROM outbox
    WHERE event_id = NEW.event_id AND kind = 'guard_ack'
    AND state IN ('sending', 'sent', 'indeterminate', 'abandoned'))
BEGIN
	UPDATE task_events SET guard = 'fired'
	WHERE task_id = NEW.task_id AND event_id = NEW.event_id;
END;

CREATE TRIGGER task_events_exposure_refused_under_hold
BEFORE UPDATE OF delivery ON task_events
WHEN OLD.delivery = 'admitted' AND NEW.delivery = 'exposed'
AND EXISTS (SELECT 1 FROM hold_marker)
BEGIN
	SELECT RAISE(ABORT, 'held: nothing is handed over');
END;

CREATE TRIGGER task_events_pull_refused_under_hold
BEFORE UPDATE OF pulled_at ON task_events
WHEN OLD.pulled_at IS NULL AND NEW.pulled_at IS NOT NULL
AND EXISTS (SELECT 1 FROM hold_marker)
BEGIN
	SELECT RAISE(ABORT, 'held: nothing is handed over');
END;

-- ---- what holds attempts and messages ------------------------------------

CREATE TRIGGER attempts_begin_launching
BEFORE INSERT ON attempts
WHEN NEW.state <> 'launching'
OR EXISTS (SELECT 1 FROM attempts WHERE id = NEW.id)
OR EXISTS (SELECT 1 FROM attempts a WHERE a.task_id = NEW.task_id
    AND (a.seq = NEW.seq OR a.state <> 'ended'))
BEGIN
	SELECT RAISE(ABORT, 'an attempt begins launching');
END;

CREATE TRIGGER attempts_keep_their_task
BEFORE UPDATE OF id, task_id, seq ON attempts
WHEN NEW.id IS NOT OLD.id OR NEW.task_id IS NOT OLD.task_id
OR NEW.seq IS NOT OLD.seq
BEGIN
	SELECT RAISE(ABORT, 'an attempt keeps its task and its number');
END;

CREATE TRIGGER attempts_are_not_deleted
BEFORE DELETE ON attempts
BEGIN
	SELECT RAISE(ABORT, 'an attempt stays recorded');
END;

CREATE TRIGGER attempts_state_moves_forward
BEFORE UPDATE OF state, stop_reason ON attempts
WHEN (CASE NEW.state WHEN 'launching' THEN 0 WHEN 'running' THEN 1
    ELSE 2 END)
< (CASE OLD.state WHEN 'launching' THEN 0 WHEN 'running' THEN 1
    ELSE 2 END)
OR (OLD.state = 'ended' AND NEW.stop_reason IS NOT OLD.stop_reason)
BEGIN
	SELECT RAISE(ABORT, 'an attempt never goes back');
END;

CREATE TRIGGER attempts_refused_under_hold
BEFORE INSERT ON attempts
WHEN EXISTS (SELECT 1 FROM hold_marker)
BEGIN
	SELECT RAISE(ABORT, 'held: nothing is started');
END;

-- What is asked for twice under one key is one message. A pending one has no
-- receipt.
CREATE TRIGGER outbox_begin_pending
BEFORE INSERT ON outbox
WHEN NEW.state <> 'pending'
OR EXISTS (SELECT 1 FROM outbox WHERE id = NEW.id)
OR EXISTS (SELECT 1 FROM outbox WHERE intent_key = NEW.intent_key)
OR EXISTS (SELECT 1 FROM outbox WHERE nonce = NEW.nonce)
BEGIN
	SELECT CASE WHEN EXISTS (SELECT 1 FROM outbox
	    WHERE intent_key = NEW.intent_key) THEN RAISE(IGNORE)
	    ELSE RAISE(ABORT, 'a message begins pending') END;
END;

-- The digit is `refused`: only what Basecamp refused was surely not posted.
CREATE TRIGGER outbox_state_edges
BEFORE UPDATE OF state, refused ON outbox
WHEN (NEW.state IS NOT OLD.state OR NEW.refused IS NOT OLD.refused)
AND (typeof(NEW.state) <> 'text' OR typeof(NEW.refused) <> 'integer'
OR instr(NEW.state, ' ') OR instr(CASE OLD.state || OLD.refused
    WHEN 'pending0' THEN ' sending0 canceled0 '
    WHEN 'sending0' THEN ' sent0 indeterminate0 canceled1 '
    WHEN 'indeterminate0' THEN ' sent0 abandoned0 pending0 '
    WHEN 'canceled1' THEN ' pending0 '
    ELSE '' END, ' ' || NEW.state || NEW.refused || ' ') = 0)
BEGIN
	SELECT RAISE(ABORT, 'a message does not move so');
END;

CREATE TRIGGER outbox_keeps_its_key
BEFORE UPDATE OF id, rowid, oid, _rowid_, intent_key, message_kind
ON outbox
WHEN NEW.id IS NOT OLD.id OR NEW.intent_key IS NOT OLD.intent_key
OR NEW.message_kind IS NOT OLD.message_kind
BEGIN
	SELECT RAISE(ABORT, 'a message keeps its key and its kind');
END;

CREATE TRIGGER outbox_nonce_is_of_one_claim
BEFORE UPDATE OF nonce ON outbox
WHEN NEW.nonce IS NOT OLD.nonce
AND EXISTS (SELECT 1 FROM outbox WHERE nonce = NEW.nonce)
BEGIN
	SELECT RAISE(ABORT, 'a nonce is of one claim');
END;

CREATE TRIGGER outbox_is_not_deleted
BEFORE DELETE ON outbox
BEGIN
	SELECT RAISE(ABORT, 'a message stays recorded');
END;

CREATE TRIGGER outbox_receipt_is_final
BEFORE UPDATE OF receipt_id ON outbox
WHEN NEW.receipt_id IS NOT OLD.receipt_id
AND (OLD.receipt_id IS NOT NULL OR EXISTS (SELECT 1 FROM outbox
    WHERE message_kind = NEW.message_kind AND receipt_id = NEW.receipt_id))
BEGIN
	SELECT RAISE(ABORT, 'a receipt is final, and one message''s alone');
END;

-- A hold stops the connector's own words, not a running worker's.
CREATE TRIGGER outbox_refused_under_hold
BEFORE UPDATE OF state ON outbox
WHEN NEW.state = 'sending' AND OLD.state IS NOT 'sending'
AND NEW.kind NOT IN ('worker_ack', 'worker_reply')
AND EXISTS (SELECT 1 FROM hold_marker)
BEGIN
	SELECT RAISE(ABORT, 'held: nothing is posted');
END;

-- What was claimed is what was posted; a worker's words are never changed.
CREATE TRIGGER outbox_body_is_fixed
BEFORE UPDATE OF body ON outbox
WHEN NEW.body IS NOT OLD.body AND (OLD.state <> 'pending'
    OR OLD.kind IN ('worker_ack', 'worker_reply'))
BEGIN
	SELECT RAISE(ABORT, 'the body of this message is fixed');
END;

CREATE TRIGGER outbox_worker_limit
BEFORE INSERT ON outbox
WHEN NEW.kind IN ('worker_ack', 'worker_reply')
AND (SELECT COUNT(*) FROM outbox WHERE event_id = NEW.event_id
    AND kind = NEW.kind AND task_id = NEW.task_id) >= 20
BEGIN
	SELECT RAISE(ABORT, 'a worker posts at most 20 of a kind an event');
END;

-- ---- what holds the feed's rows --------------------------------------------

CREATE TRIGGER checkpoints_begin_once
BEFORE INSERT ON checkpoints
WHEN EXISTS (SELECT 1 FROM checkpoints WHERE flat_key = NEW.flat_key)
BEGIN
	SELECT RAISE(IGNORE);
END;

CREATE TRIGGER checkpoints_keep_their_key
BEFORE UPDATE OF flat_key ON checkpoints
WHEN NEW.flat_key IS NOT OLD.flat_key
BEGIN
	SELECT RAISE(ABORT, 'a checkpoint keeps its key');
END;

-- The only safe re-entry when the position is lost.
CREATE TRIGGER checkpoints_served_id_moves_forward
BEFORE UPDATE OF last_poll_served_id ON checkpoints
WHEN NEW.last_poll_served_id IS NULL
OR NEW.last_poll_served_id < OLD.last_poll_served_id
BEGIN
	SELECT RAISE(ABORT, 'the served id never goes back');
END;

CREATE TRIGGER checkpoints_are_not_deleted
BEFORE DELETE ON checkpoints
BEGIN
	SELECT RAISE(ABORT, 'a checkpoint keeps its served id');
END;

CREATE TRIGGER losses_begin_once
BEFORE INSERT ON losses
WHEN EXISTS (SELECT 1 FROM losses WHERE id = NEW.id)
OR EXISTS (SELECT 1 FROM losses WHERE nonce = NEW.nonce)
BEGIN
	SELECT RAISE(ABORT, 'a loss is recorded once');
END;

CREATE TRIGGER losses_keep_their_nonce
BEFORE UPDATE OF id, rowid, oid, _rowid_, nonce ON losses
WHEN NEW.id IS NOT OLD.id OR NEW.nonce IS NOT OLD.nonce
BEGIN
	SELECT RAISE(ABORT, 'a loss keeps its nonce');
END;

CREATE TRIGGER losses_resolve_once
BEFORE UPDATE OF resolved_at ON losses
WHEN OLD.resolved_at IS NOT NULL AND NEW.resolved_at IS NOT OLD.resolved_at
BEGIN
	SELECT RAISE(ABORT, 'a loss is resolved once');
END;

CREATE TRIGGER losses_are_not_deleted
BEFORE DELETE ON losses
BEGIN
	SELECT RAISE(ABORT, 'a loss stays recorded');
END;

CREATE TRIGGER loss_ids_begin_missing_or_known
BEFORE INSERT ON loss_ids
WHEN NEW.state NOT IN ('missing', 'never_lost')
OR EXISTS (SELECT 1 FROM loss_ids WHERE loss_id = NEW.loss_id
    AND event_id = NEW.event_id)
BEGIN
	SELECT CASE WHEN EXISTS (SELECT 1 FROM loss_ids
	    WHERE loss_id = NEW.loss_id AND event_id = NEW.event_id)
	    THEN RAISE(IGNORE)
	    ELSE RAISE(ABORT, 'a lost id begins missing, or is known') END;
END;

CREATE TRIGGER loss_ids_keep_their_loss
BEFORE UPDATE OF loss_id, event_id ON loss_ids
WHEN NEW.loss_id IS NOT OLD.loss_id OR NEW.event_id IS NOT OLD.event_id
BEGIN
	SELECT RAISE(ABORT, 'a lost id keeps its loss');
END;

CREATE TRIGGER loss_ids_state_edges
BEFORE UPDATE OF state ON loss_ids
WHEN NEW.state IS NOT OLD.state
AND NOT (OLD.state = 'missing' AND NEW.state IN ('recovered', 'unrecovered'))
AND NOT (OLD.state = 'unrecovered' AND NEW.state = 'recovered')
BEGIN
	SELECT RAISE(ABORT, 'a lost id does not move so');
END;

CREATE TRIGGER loss_ids_are_not_deleted
BEFORE DELETE ON loss_ids
BEGIN
	SELECT RAISE(ABORT, 'a lost id stays recorded');
END;

CREATE TRIGGER gaps_begin_once
BEFORE INSERT ON gaps
WHEN EXISTS (SELECT 1 FROM gaps WHERE id = NEW.id)
OR EXISTS (SELECT 1 FROM gaps WHERE nonce = NEW.nonce)
BEGIN
	SELECT CASE WHEN EXISTS (SELECT 1 FROM gaps WHERE nonce = NEW.nonce)
	    THEN RAISE(IGNORE) ELSE RAISE(ABORT, 'a gap is written once') END;
END;

CREATE TRIGGER gaps_are_not_changed
BEFORE UPDATE ON gaps
BEGIN
	SELECT RAISE(ABORT, 'a gap is written once');
END;

CREATE TRIGGER gaps_are_not_deleted
BEFORE DELETE ON gaps
BEGIN
	SELECT RAISE(ABORT, 'a gap stays recorded');
END;

-- ---- what holds persons' words ---------------------------------------------

CREATE TRIGGER hold_marker_begins_once
BEFORE INSERT ON hold_marker
WHEN EXISTS (SELECT 1 FROM hold_marker)
BEGIN
	SELECT RAISE(ABORT, 'there is a hold');
END;

-- First setter, cause and time stay: a second hold moves the generation only.
CREATE TRIGGER hold_marker_moves_its_generation
BEFORE UPDATE ON hold_marker
WHEN NEW.id IS NOT OLD.id OR NEW.cause IS NOT OLD.cause
OR NEW.held_by IS NOT OLD.held_by OR NEW.held_at IS NOT OLD.held_at
OR NEW.generation < OLD.generation
BEGIN
	SELECT RAISE(ABORT, 'of a hold only the generation moves on');
END;

CREATE TRIGGER generations_begin_once
BEFORE INSERT ON generations
WHEN EXISTS (SELECT 1 FROM generations WHERE id = NEW.id)
BEGIN
	SELECT RAISE(ABORT, 'a generation is written once');
END;

CREATE TRIGGER generations_are_not_changed
BEFORE UPDATE ON generations
BEGIN
	SELECT RAISE(ABORT, 'a generation is written once');
END;

CREATE TRIGGER generations_are_not_deleted
BEFORE DELETE ON generations
BEGIN
	SELECT RAISE(ABORT, 'a generation stays recorded');
END;

CREATE TRIGGER decisions_begin_once
BEFORE INSERT ON decisions
WHEN EXISTS (SELECT 1 FROM decisions WHERE id = NEW.id)
OR EXISTS (SELECT 1 FROM decisions WHERE nonce = NEW.nonce)
BEGIN
	SELECT RAISE(ABORT, 'a decision is written once');
END;

CREATE TRIGGER decisions_are_not_changed
BEFORE UPDATE ON decisions
BEGIN
	SELECT RAISE(ABORT, 'a decision is written once');
END;

CREATE TRIGGER decisions_are_not_deleted
BEFORE DELETE ON decisions
BEGIN
	SELECT RAISE(ABORT, 'a decision stays recorded');
END;

-- ---- what is noted beside it all -------------------------------------------

CREATE TRIGGER renewal_holds_begin_once
BEFORE INSERT ON renewal_holds
WHEN EXISTS (SELECT 1 FROM renewal_holds WHERE fingerprint = NEW.fingerprint)
BEGIN
	SELECT RAISE(IGNORE);
END;

CREATE TRIGGER renewal_holds_keep_their_fingerprint
BEFORE UPDATE OF fingerprint ON renewal_holds
WHEN NEW.fingerprint IS NOT OLD.fingerprint
BEGIN
	SELECT RAISE(ABORT, 'a renewal hold is of one credential');
END;

CREATE TRIGGER connection_begins_once
BEFORE INSERT ON connection
WHEN EXISTS (SELECT 1 FROM connection)
BEGIN
	SELECT RAISE(IGNORE);
END;

CREATE TRIGGER retention_begins_once
BEFORE INSERT ON retention
WHEN EXISTS (SELECT 1 FROM retention)
BEGIN
	SELECT RAISE(IGNORE);
END;
