/* What is done to a process that stands where a rule wants it. */
#include <errno.h>
#include <string.h>

#include "tests/crash/killat.h"

static void act_kill(json_t *line, struct task *t);
static void act_kill_root(json_t *line, struct task *t);
static void act_kill_tree(json_t *line, struct task *t);
static void act_record(json_t *line, struct task *t);

static const struct {
	const char *word;
	const char *what; /* is said of it */
	void (*act)(json_t *line, struct task *t);
} actions[ACT_COUNT] = {
    [ACT_KILL] = {"kill", "kill", act_kill},
    [ACT_KILL_ROOT] = {"kill-root", "kill", act_kill_root},
    [ACT_KILL_TREE] = {"kill-tree", "kill", act_kill_tree},
    [ACT_HOLD] = {"hold", "hold", NULL},
    [ACT_NOTE] = {"note", "note", NULL},
    [ACT_RECORD] = {"record", "record", act_record},
    [ACT_FAIL] = {"fail", "fail", NULL},
};

static const struct {
	const char *name;
	int error;
} errors[] = {
    {"EPERM", EPERM},
    {"ENOSPC", ENOSPC},
    {"EIO", EIO},
    {"ENOMEM", ENOMEM},
    {"EDQUOT", EDQUOT},
    {"EAGAIN", EAGAIN},
    {"EINTR", EINTR},
    {"EMFILE", EMFILE},
    {"EPIPE", EPIPE},
    {"ECONNRESET", ECONNRESET},
    {"EACCES", EACCES},
    {"EROFS", EROFS},
};

static int
error_parse(const char *name, int *error)
{
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (strcmp(errors[i].name, name) == 0) {
			*error = errors[i].error;
			return 0;
		}
	}
	return -1;
}

int
action_parse(const char *word, enum action *action, int *error)
{
	for (*action = 0; *action < ACT_FAIL; (*action)++) {
		if (strcmp(actions[*action].word, word) == 0)
			return 0;
	}
	return strncmp(word, "fail=", 5) == 0 ? error_parse(word + 5, error)
					      : -1;
}

/* ---- the actions -------------------------------------------------------- */

static void
act_kill(json_t *line, struct task *t)
{
	if (trace_kill(t->pid) == -1)
		(void)json_object_set_new(
		    line, "error", json_string(strerror(errno)));
}

static void
act_kill_root(json_t *line, struct task *t)
{
	trace_kill_root();
}

static void
act_kill_tree(json_t *line, struct task *t)
{
	trace_kill_tree(t);
}

/* As text where it is, and always as hexadecimal digits. */
static void
act_record(json_t *line, struct task *t)
{
	static const char digits[] = "0123456789abcdef";
	struct buffer bytes = {0}, hex = {0};
	size_t i;

	if (t->call.row == NULL ||
	    call_bytes(t->tid, &t->call, BYTES_MOST, &bytes) == -1)
		goto out;
	buffer_add_text(&hex, "");
	for (i = 0; i < bytes.len; i++) {
		buffer_add_char(&hex, digits[(bytes.bytes[i] >> 4) & 0xf]);
		buffer_add_char(&hex, digits[bytes.bytes[i] & 0xf]);
	}
	(void)json_object_set_new(
	    line, "hex", json_stringn(hex.bytes, hex.len));
	(void)json_object_set_new(
	    line, "text", json_stringn(bytes.bytes, bytes.len));
out:
	buffer_free(&bytes);
	buffer_free(&hex);
}

void
action_do(enum action action, const struct rule *r, struct task *t, int error)
{
	json_t *line =
	    json_pack("{ss si ss si ss si}", "what", actions[action].what,
		"rule", rule_number(r), "name", t->actor->name, "pid", t->pid,
		"call", t->call.row == NULL ? "exec" : call_name(&t->call),
		"fd", call_fd(&t->call));

	if (action == ACT_HOLD)
		t->held_by = r;
	if (action == ACT_FAIL && call_disarm(t->tid, &t->call) == 0)
		t->failing = error;
	if (actions[action].act != NULL)
		actions[action].act(line, t);
	say(line);
}

void
held_go(const struct rule *rule)
{
	struct task *t;

	TAILQ_FOREACH (t, &tasks, entry) {
		if (t->held_by == NULL || (rule != NULL && t->held_by != rule))
			continue;
		say(json_pack("{ss si ss si}", "what", "go", "rule",
		    rule_number(t->held_by), "name", t->actor->name, "pid",
		    t->pid));
		t->held_by = NULL;
		task_resume(t, 0);
	}
}
