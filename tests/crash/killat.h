/*
 * killat follows the processes of a tree from birth by ptrace(2) and does what
 * it was told at one of their system calls or execs: it kills, stops, records
 * or lets the call fail (design 9). Nothing in the traced programs knows of it.
 *
 *	killat [-c] RULE... [-- COMMAND [ARGUMENT...]]
 *
 * The tree is what has the root's name (the last part of its argv[0] at its
 * exec), or that name with a dash and more behind it: connectd,
 * connectd-ledger. All else is let go at its exec. What was forked and has
 * not exec'd yet is of the tree, as NAME/fork of whoever forked it, up to an
 * exec that is under way and leads out of it. A thread is its process's. -c
 * counts the calls of all of them, else only those are stopped at each call
 * whom a rule names.
 *
 * RULE is [later:]ACTION@NAME:POINT[/[!]FD][:N[+]][~REGEX].
 *
 * ACTION	kill		that process
 *		kill-root	the first process of the tree alone
 *		kill-tree	all of it, the root first
 *		hold		stop it there until told to let it go
 *		note		say that it is there
 *		record		and what it is about to write
 *		fail=ERRNO	the call does not happen and fails with ERRNO
 * POINT	exec		its exec
 *		a call's name, or a class of calls, at their entry:
 *		  write		whatever changes a file, a name or a stream
 *		  send		of these, bytes into a stream
 *		  sync name	of these, syncs; names made or taken away
 *		  read		bytes out of a stream or file
 *		  alloc		memory: mmap, mremap, brk
 *		tx		the first write-class call after a read of it
 *				that fits the rest of the rule
 * FD counts only calls on (or with !, not on) that descriptor, N is the how
 * manyeth of those that fit, N+ each from there on; 1 if not given. REGEX is
 * an extended one over the bytes, at most 64 KiB of them, that are written or
 * were read; to see those of a process that is not dumpable needs root.
 *
 * Standard input takes commands, a line each:
 *	seize PID	without COMMAND: be the root's tracer. It has stopped
 *			itself before its exec and is continued then.
 *	arm N		the N-th rule (from 1), a `later` one, counts now
 *	go N, go all	let go what that rule, or any, holds
 *	counts		say the counts now
 *	kill		all of the tree, now; it is said as of rule 0
 *
 * Standard output is what happened, a JSON object a line, told by its `what`:
 * seized, exec, let_go, armed, kill, hold, go, note, record, fail, blind (bytes
 * that could not be seen), counts, error, exit, and last of all end. COMMAND's
 * output goes to standard error. Whatever is still traced when killat ends
 * ends too. Exit status: 0, every rule was met; 1, one was not; 2, usage or a
 * tree that could not be followed.
 */
#ifndef TESTS_KILLAT_H
#define TESTS_KILLAT_H

#include <sys/queue.h>
#include <sys/types.h>

#include <jansson.h>
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"

#define NAME_SIZE 64
#define BYTES_MOST 65536

/* ---- system calls: killat_call.c ---------------------------------------- */

enum {
	CLASS_WRITE = 1 << 0,
	CLASS_SEND = 1 << 1,
	CLASS_SYNC = 1 << 2,
	CLASS_NAME = 1 << 3,
	CLASS_READ = 1 << 4,
	CLASS_ALLOC = 1 << 5,
	CLASSES = 6
};
extern const char *const class_names[CLASSES];

struct call_row;

/* A call that some class has; ROW is NULL for any other. */
struct call {
	const struct call_row *row;
	uint64_t args[6];
};

/* ARGS are its six arguments. */
struct call call_of(uint64_t number, const uint64_t *args);
unsigned call_classes(const struct call *c);
const char *call_name(const struct call *c);
int call_fd(const struct call *c); /* -1: it has none */
/* The row of that name, or NULL. */
const struct call_row *call_by_name(const char *name);
/*
 * What it writes, or has read when DONE bytes of its buffers count, is added
 * to B. -1 with errno when the memory cannot be seen.
 */
int call_bytes(pid_t tid, const struct call *c, size_t done, struct buffer *b);
/* At its entry: make it harmless. At its exit: let it have failed. */
int call_disarm(pid_t tid, const struct call *c);
int call_fail(pid_t tid, const struct call *c, int error);

/* ---- processes: killat_trace.c ------------------------------------------ */

struct rule;

/* All processes that have had the same name. */
struct actor {
	char name[NAME_SIZE];
	long counts[CLASSES];
	bool is_watched; /* stopped at each call */
	STAILQ_ENTRY(actor) entry;
};

/* A thread. */
struct task {
	pid_t tid, pid;
	struct actor *actor; /* NULL until the root's exec */
	struct call call;    /* the one it is in */
	int failing;         /* with this error, or 0 */
	const struct rule *held_by;
	bool has_left; /* by an exec under way when the tree was killed */
	TAILQ_ENTRY(task) entry;
};
TAILQ_HEAD(tasks, task);
extern struct tasks tasks;
extern bool trace_counts_all; /* the calls of the whole tree */

/* Follow PID and all that comes of it, once; -1 with errno. */
int trace_seize(pid_t pid);
/* Handle what has happened; false once there was a tree and none is left. */
bool trace_reap(void);
/* On it goes; SIGNAL is delivered to it unless 0. */
void task_resume(struct task *t, int signal);
int trace_kill(pid_t pid); /* -1 with errno */
void trace_kill_root(void);
/*
 * THERE, which stands at a call and can do nothing more, comes last; NULL when
 * nobody does.
 */
void trace_kill_tree(const struct task *there);
void trace_say_counts(void);

/* ---- rules: killat_rule.c, killat_act.c --------------------------------- */

/* A number of a rule, or NULL. */
struct rule *rule_get(unsigned long number);
/* Returns 0, or -1 with why in a static text. */
int rule_add(const char *text, const char **why);
/* Is there one that wants to see the calls of that name? */
bool rules_watch(const char *name);
/* T is at its exec, at a call's entry, or has read so many bytes. */
void rules_exec(struct task *t);
void rules_entry(struct task *t);
void rules_read(struct task *t, size_t done);
/* Say which were not met; are there any? */
bool rules_missed(json_t *out);
void rule_arm(struct rule *r);
unsigned rule_number(const struct rule *r);

enum action {
	ACT_KILL,
	ACT_KILL_ROOT,
	ACT_KILL_TREE,
	ACT_HOLD,
	ACT_NOTE,
	ACT_RECORD,
	ACT_FAIL,
	ACT_COUNT
};
/* -1 for no such word; *ERROR is set for fail=. */
int action_parse(const char *word, enum action *action, int *error);
void action_do(
    enum action action, const struct rule *r, struct task *t, int error);
/* All that RULE holds, or with NULL all that is held, goes on. */
void held_go(const struct rule *rule);

/* ---- what is said: killat.c --------------------------------------------- */

/* One line; LINE is taken. */
void say(json_t *line);

#endif
