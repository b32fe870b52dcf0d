
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/paths.h"
#include "common/process.h"
#include "common/random.h"
#include "common/sandbox.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "ledger/database.h"
#include "ledger/hold.h"
#include "ledger/inspect.h"
#include "ledger/place.h"
#include "ledger/promote.h"

#define BY_MAX 128
#define NONCE_BYTES 16

struct promotion {
	struct place shadow, normal;
	const char *by;
	bool insecure;
	bool already; /* done before: nothing is left to do */
	struct ledger ledger;
	json_t *told; /* the hold, and what it made of the records */
	struct error e;
};

/* A step's end: EXIT_OK to go on, or what to end with, and E why. */
typedef int (*step)(struct promotion *p);

static int
end(struct promotion *p, enum exit_code code, const char *text)
{
	(void)error_set(&p->e, "%s", text);
	return code;
}

/* RC of a function that sets p->e. */
static int
end_if(int rc, enum exit_code code)
{
	return rc == -1 ? (int)code : EXIT_OK;
}

/* ---- before the walls ---------------------------------------------------- */

static bool
is_one_place(const struct promotion *p)
{
	const struct place *a = &p->shadow, *b = &p->normal;

	return strcmp(a->dir, b->dir) == 0 ||
	    (a->is_there && b->is_there && a->st.st_dev == b->st.st_dev &&
		a->st.st_ino == b->st.st_ino);
}

/* Two places of one agent, on one file system. */
static int
places_check(struct promotion *p)
{
	struct place *a = &p->shadow, *b = &p->normal;

	if (place_look(a, &p->e) == -1 || place_look(b, &p->e) == -1)
		return EXIT_REFUSED;
	if (is_one_place(p))
		return end(p, EXIT_REFUSED, "both are the same directory");
	if (strcmp(a->name, b->name) != 0)
		return end(
		    p, EXIT_REFUSED, "the directories are of different agents");
	if (a->is_there && b->is_there && a->st.st_dev != b->st.st_dev)
		return end(p, EXIT_REFUSED,
		    "the directories are on different file systems");
	return EXIT_OK;
}

/* For good, as root, to whoever the ledger belongs to. */
static int
owner_become(struct promotion *p)
{
	const struct place *place =
	    p->shadow.is_there ? &p->shadow : &p->normal;

	if (geteuid() != 0 || !place->is_there || place->st.st_uid == 0)
		return EXIT_OK;
	return end_if(process_become(place->st.st_uid, place->st.st_gid, &p->e),
	    EXIT_WALLS);
}

/* A person's directory has a person's lock; root makes none there. */
static int
person_become(struct promotion *p)
{
	struct stat st;

	if (!p->shadow.is_there || lstat(p->shadow.root, &st) == -1 ||
	    st.st_uid != p->shadow.st.st_uid)
		return EXIT_OK;
	return owner_become(p);
}

/* Without a shadow nothing will be touched. */
static int
locks_take(struct promotion *p)
{
	if (!p->shadow.is_there ||
	    (place_lock(&p->shadow, &p->e) == 0 &&
		place_lock(&p->normal, &p->e) == 0))
		return EXIT_OK;
	return p->e.code == EWOULDBLOCK ? EXIT_BUSY : EXIT_REFUSED;
}

/*
 * The shadow's owner's, too. A connector that never ran otherwise than as a
 * shadow has none yet; one that was just being made when that was killed is
 * not its owner's yet.
 */
static int
normal_make(struct promotion *p)
{
	const struct stat *st = &p->shadow.st;
	int fd;

	if (!p->shadow.is_there || place_has_ledger(&p->shadow, &p->e) != 1)
		return EXIT_OK;
	fd = path_private_dir(
	    p->normal.dir, 0700, 077, st->st_uid, st->st_gid, &p->e);
	if (fd == -1)
		return EXIT_REFUSED;
	(void)close(fd);
	return places_check(p);
}

/* These two directories and nothing else. */
static int
walls_raise(struct promotion *p)
{
	struct sandbox_profile profile = {
	    .words = SANDBOX_STDIO | SANDBOX_RPATH | SANDBOX_WPATH};
	const struct place *const places[] = {&p->shadow, &p->normal};
	struct sandbox_report walls;
	size_t i, n = 0;

	for (i = 0; i < 2; i++) {
		if (places[i]->is_there)
			profile.dirs[n++] =
			    (struct sandbox_dir){places[i]->dir, SANDBOX_WRITE};
	}
	if (inspect_process_init(&p->e) == -1)
		return EXIT_WALLS;
	return end_if(sandbox_enter(&profile, "", p->insecure, &walls, &p->e),
	    EXIT_WALLS);
}

/* ---- behind them --------------------------------------------------------- */

static int
open_code(enum open_result result)
{
	static const enum exit_code codes[] = {
	    [OPEN_OK] = EXIT_OK,
	    [OPEN_MISSING] = EXIT_NOT_RUNNING,
	    [OPEN_REFUSED] = EXIT_REFUSED,
	    [OPEN_FAILED] = EXIT_STORAGE,
	};

	return codes[result];
}

static int
owner_open(struct promotion *p, const struct place *place)
{
	return open_code(
	    database_open(&p->ledger, place->dir, NULL, NULL, &p->e));
}

static int
storage_failed(struct promotion *p)
{
	return end(p, EXIT_STORAGE, p->ledger.error.text);
}

/* What will be printed, of the ledger that is open. */
static int
hold_read(struct promotion *p, int64_t decision_id)
{
	struct ledger *l = &p->ledger;
	sqlite3_stmt *row;

	if (sql_first(l, STMT_HOLD_IS, WITH(v_int(decision_id))) != 1)
		return storage_failed(p);
	row = sql_row(l, STMT_HOLD_IS);
	p->told = json_pack("{s:b, s:{s:I, s:s, s:s, s:s}, s:I, s:I, s:s++}",
	    "already", p->already, "hold", "generation",
	    (json_int_t)row_int(row, 1), "cause", row_text(row, 2), "held_by",
	    row_text(row, 3), "held_at", row_text(row, 4), "tagged",
	    (json_int_t)row_int(row, 5), "held", (json_int_t)row_int(row, 6),
	    "ledger", p->normal.dir, "/", DATABASE_NAME);
	if (p->told == NULL)
		return end(p, EXIT_FAILED, "what was held cannot be told");
	return EXIT_OK;
}

static int
already_read(struct promotion *p)
{
	struct ledger *l = &p->ledger;
	int64_t is_promoted;

	if (sql_number(l, STMT_IS_PROMOTED, WITH_NOTHING, &is_promoted) == -1)
		return storage_failed(p);
	if (is_promoted)
		return hold_read(p, 0);
	(void)error_set(
	    &p->e, "no shadow ledger in %s", log_safe(p->shadow.dir));
	return EXIT_NOT_RUNNING;
}

/* The shadow's ledger is gone: was it promoted before? */
static int
already_check(struct promotion *p)
{
	enum open_result result;
	int code, there = 0;

	if (p->shadow.is_there &&
	    (there = place_has_ledger(&p->shadow, &p->e)) == -1)
		return EXIT_REFUSED;
	if (there == 1)
		return EXIT_OK;
	p->already = true;
	result = database_open_readonly(&p->ledger, p->normal.dir, &p->e);
	if (result == OPEN_MISSING)
		(void)error_set(&p->e, "no shadow ledger in %s, and none in %s",
		    log_safe(p->shadow.dir), log_safe(p->normal.dir));
	code = open_code(result);
	if (code == EXIT_OK)
		code = already_read(p);
	database_close(&p->ledger);
	return code;
}

/* Nothing is put in another ledger's place, or under its sidecars. */
static int
normal_check(struct promotion *p)
{
	return end_if(place_is_clear(&p->normal, true, &p->e), EXIT_REFUSED);
}

static int
hold_write(struct promotion *p, struct answer *a, int64_t *decision_id)
{
	struct ledger *l = &p->ledger;
	char nonce[2 * NONCE_BYTES + 1];

	random_hex(nonce, NONCE_BYTES);
	ledger_set_now(l);
	if (sql_run(l, STMT_BEGIN, WITH_NOTHING) == -1 ||
	    hold_set(l, a, nonce, p->by, "shadow_promote", decision_id) == -1)
		return storage_failed(p);
	if (answer_failed(a))
		return end(p, EXIT_FAILED, a->reply.failed.text);
	sql_reset_all(l);
	return sql_run(l, STMT_COMMIT, WITH_NOTHING) == -1 ? storage_failed(p)
							   : EXIT_OK;
}

/* Marker, tags and decision: one transaction. Held from then on. */
static int
hold_commit(struct promotion *p)
{
	int64_t decision_id = 0;
	struct answer a;
	int code;

	answer_init(&a);
	code = hold_write(p, &a, &decision_id);
	answer_clear(&a);
	if (code == EXIT_OK)
		code = hold_read(p, decision_id);
	sql_reset_all(&p->ledger);
	return code;
}

/* It is held, wherever it lies; then all of it is in one file. */
static int
shadow_hold(struct promotion *p)
{
	int code = owner_open(p, &p->shadow);

	if (code == EXIT_OK)
		code = hold_commit(p);
	if (code == EXIT_OK)
		code = end_if(database_fold(&p->ledger, &p->e), EXIT_STORAGE);
	database_close(&p->ledger);
	if (code == EXIT_OK)
		code = end_if(
		    place_is_clear(&p->shadow, false, &p->e), EXIT_STORAGE);
	return code;
}

/* The one step that moves it. */
static int
ledger_move(struct promotion *p)
{
	char *from, *to;
	int rc;

	(void)xasprintf(&from, "%s/" DATABASE_NAME, p->shadow.dir);
	(void)xasprintf(&to, "%s/" DATABASE_NAME, p->normal.dir);
	rc = rename(from, to);
	if (rc == -1)
		(void)error_errno(&p->e, "%s", log_safe(to));
	free(from);
	free(to);
	if (rc == 0)
		rc = place_sync(&p->normal, &p->e);
	if (rc == 0)
		rc = place_sync(&p->shadow, &p->e);
	return end_if(rc, EXIT_STORAGE);
}

/* As the connector will open it: does the marker stand? */
static int
normal_verify(struct promotion *p)
{
	int64_t is_held = 0;
	int code = owner_open(p, &p->normal);

	if (code == EXIT_OK &&
	    sql_number(&p->ledger, STMT_IS_HELD, WITH_NOTHING, &is_held) == -1)
		code = storage_failed(p);
	database_close(&p->ledger);
	if (code == EXIT_OK && !is_held)
		return end(p, EXIT_CRASH, "the promoted ledger is not held");
	return code;
}

/* The order of operator.md 3.7: a kill behind any of them leaves one ledger. */
static const step steps[] = {
    places_check,
    person_become,
    locks_take,
    normal_make,
    owner_become,
    walls_raise,
    already_check,
    normal_check,
    shadow_hold,
    ledger_move,
    normal_verify,
};

/* ---- the command --------------------------------------------------------- */

static int
promote(struct promotion *p)
{
	int code = EXIT_OK;
	size_t i;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]) && code == EXIT_OK &&
	     !p->already;
	     i++)
		code = steps[i](p);
	if (code != EXIT_OK)
		return code;
	if (json_dumpf(p->told, stdout, JSON_COMPACT) == -1 ||
	    putchar('\n') == EOF || fflush(stdout) == EOF) {
		(void)error_errno(&p->e, "stdout");
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

/* A name that a row and a line of JSON can hold. */
static bool
is_by(const char *by)
{
	size_t i, len = strlen(by);

	for (i = 0; i < len; i++) {
		if ((unsigned char)by[i] < ' ' || by[i] == 0x7f)
			return false;
	}
	return len != 0 && len <= BY_MAX && utf8_is_valid(by, len);
}

int
promote_main(char *const *words, bool insecure)
{
	struct promotion p = {.insecure = insecure};
	int code = EXIT_REFUSED;
	size_t n = 0;

	while (words[n] != NULL)
		n++;
	if (n != 4 || strcmp(words[2], "--by") != 0 || *words[0] == '\0' ||
	    *words[1] == '\0' || !is_by(words[3]))
		return EXIT_USAGE;
	(void)umask(077);
	p.by = words[3];
	if (place_read(&p.shadow, words[0], &p.e) == 0 &&
	    place_read(&p.normal, words[1], &p.e) == 0)
		code = promote(&p);
	if (code != EXIT_OK)
		log_warnx("%s", p.e.text);
	json_decref(p.told);
	place_free(&p.shadow);
	place_free(&p.normal);
	return code;
}
