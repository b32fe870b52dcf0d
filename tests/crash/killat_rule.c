/* Rules: how they are written, and when they are met. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/crash/killat.h"

#define RULES_MAX 32
#define ANY_FD (-1)

enum point { POINT_EXEC, POINT_TX, POINT_CALL };

struct rule {
	enum action action;
	int error; /* of fail= */
	char name[NAME_SIZE];
	enum point point;
	unsigned class; /* of the calls that count; 0: those of one name */
	const struct call_row *call;
	int fd;
	bool not_fd;
	long n;
	bool onwards;
	bool has_pattern;
	regex_t pattern;
	bool is_asleep;
	bool is_primed; /* tx: the read was there */
	bool is_blind;  /* and that was said */
	long seen, hits;
};

static struct rule rules[RULES_MAX];
static size_t rule_count;

struct rule *
rule_get(unsigned long number)
{
	return number == 0 || number > rule_count ? NULL : &rules[number - 1];
}

unsigned
rule_number(const struct rule *r)
{
	return (unsigned)(r - rules) + 1;
}

/* ---- reading one -------------------------------------------------------- */

/* Cut TEXT at the first C; what is behind it, or NULL. */
static char *
cut(char *text, char c)
{
	char *at = strchr(text, c);

	if (at == NULL)
		return NULL;
	*at = '\0';
	return at + 1;
}

static int
number_parse(const char *text, long least, char **end, long *out)
{
	errno = 0;
	*out = strtol(text, end, 10);
	return errno != 0 || *end == text || *out < least ? -1 : 0;
}

static int
fd_parse(struct rule *r, const char *text)
{
	char *end;
	long fd;

	r->fd = ANY_FD;
	if (text == NULL)
		return 0;
	r->not_fd = *text == '!';
	if (number_parse(text + r->not_fd, 0, &end, &fd) == -1 || *end != '\0')
		return -1;
	r->fd = (int)fd;
	return 0;
}

static int
n_parse(struct rule *r, const char *text)
{
	char *end;

	r->n = 1;
	if (text == NULL)
		return 0;
	if (number_parse(text, 1, &end, &r->n) == -1)
		return -1;
	r->onwards = *end == '+';
	return end[r->onwards] == '\0' ? 0 : -1;
}

static int
point_parse(struct rule *r, const char *word)
{
	size_t i;

	r->point = POINT_CALL;
	if (strcmp(word, "exec") == 0) {
		r->point = POINT_EXEC;
		return 0;
	}
	if (strcmp(word, "tx") == 0) {
		r->point = POINT_TX;
		r->class = CLASS_READ;
		return 0;
	}
	for (i = 0; i < CLASSES; i++) {
		if (strcmp(word, class_names[i]) == 0) {
			r->class = 1u << i;
			return 0;
		}
	}
	r->call = call_by_name(word);
	return r->call == NULL ? -1 : 0;
}

static int
pattern_parse(struct rule *r, const char *text)
{
	if (text == NULL)
		return 0;
	r->has_pattern = true;
	return regcomp(&r->pattern, text, REG_EXTENDED) == 0 ? 0 : -1;
}

/* In its order from the end, so that each part is cut off. */
static const char *
rule_parse(struct rule *r, char *text)
{
	char *action = text, *name, *point, *n, *fd, *pattern;

	if (strncmp(action, "later:", 6) == 0) {
		r->is_asleep = true;
		action += 6;
	}
	if ((name = cut(action, '@')) == NULL)
		return "no @";
	if ((point = cut(name, ':')) == NULL)
		return "no point";
	pattern = cut(point, '~');
	n = cut(point, ':');
	fd = cut(point, '/');
	if (strlen(name) >= sizeof(r->name))
		return "the name is too long";
	(void)snprintf(r->name, sizeof(r->name), "%s", name);
	if (action_parse(action, &r->action, &r->error) == -1)
		return "no such action";
	if (point_parse(r, point) == -1)
		return "no such point";
	if (fd_parse(r, fd) == -1)
		return "no descriptor";
	if (n_parse(r, n) == -1)
		return "no number";
	if (pattern_parse(r, pattern) == -1)
		return "no regular expression";
	if (r->action == ACT_FAIL && r->point != POINT_CALL)
		return "only a call can fail";
	return NULL;
}

int
rule_add(const char *text, const char **why)
{
	struct rule *r = &rules[rule_count];
	char copy[512];

	*why = "too long, or too many";
	if (rule_count == RULES_MAX || strlen(text) >= sizeof(copy))
		return -1;
	(void)snprintf(copy, sizeof(copy), "%s", text);
	*why = rule_parse(r, copy);
	if (*why != NULL)
		return -1;
	rule_count++;
	return 0;
}

/* ---- meeting it --------------------------------------------------------- */

bool
rules_watch(const char *name)
{
	size_t i;

	for (i = 0; i < rule_count; i++) {
		if (rules[i].point != POINT_EXEC &&
		    strcmp(rules[i].name, name) == 0)
			return true;
	}
	return false;
}

void
rule_arm(struct rule *r)
{
	r->is_asleep = false;
}

static bool
rule_is_of(const struct rule *r, const struct task *t)
{
	return !r->is_asleep && strcmp(r->name, t->actor->name) == 0;
}

static bool
rule_counts_call(const struct rule *r, const struct call *c)
{
	if (r->call != NULL ? r->call != c->row
			    : (r->class & call_classes(c)) == 0)
		return false;
	return r->fd == ANY_FD || (r->fd == call_fd(c)) != r->not_fd;
}

static void
rule_blind(struct rule *r, const struct task *t, int error)
{
	if (r->is_blind)
		return;
	r->is_blind = true;
	say(json_pack("{ss si ss si ss}", "what", "blind", "rule",
	    rule_number(r), "name", t->actor->name, "pid", t->pid, "why",
	    strerror(error)));
}

/* DONE bytes of the call's buffers count. */
static bool
rule_fits_bytes(struct rule *r, const struct task *t, size_t done)
{
	struct buffer b = {0};
	regmatch_t range;
	bool fits = false;

	if (!r->has_pattern)
		return true;
	buffer_add_text(&b, "");
	if (call_bytes(t->tid, &t->call, done, &b) == -1) {
		rule_blind(r, t, errno);
	} else {
		range = (regmatch_t){0, (regoff_t)b.len};
		fits =
		    regexec(&r->pattern, b.bytes, 1, &range, REG_STARTEND) == 0;
	}
	buffer_free(&b);
	return fits;
}

/* One more that fits: is it the one? */
static bool
rule_count_one(struct rule *r)
{
	r->seen++;
	return r->seen == r->n || (r->onwards && r->seen > r->n);
}

static void
rule_met(struct rule *r, struct task *t)
{
	r->hits++;
	action_do(r->action, r, t, r->error);
}

void
rules_exec(struct task *t)
{
	size_t i;

	for (i = 0; i < rule_count; i++) {
		if (rules[i].point == POINT_EXEC && rule_is_of(&rules[i], t) &&
		    rule_count_one(&rules[i]))
			rule_met(&rules[i], t);
	}
}

static bool
rule_is_met_at(struct rule *r, const struct task *t)
{
	if (r->point == POINT_CALL)
		return rule_counts_call(r, &t->call) &&
		    rule_fits_bytes(r, t, BYTES_MOST) && rule_count_one(r);
	if (!r->is_primed || (call_classes(&t->call) & CLASS_WRITE) == 0)
		return false;
	r->is_primed = false;
	return true;
}

void
rules_entry(struct task *t)
{
	size_t i;

	for (i = 0; i < rule_count; i++) {
		if (rules[i].point != POINT_EXEC && rule_is_of(&rules[i], t) &&
		    rule_is_met_at(&rules[i], t))
			rule_met(&rules[i], t);
	}
}

void
rules_read(struct task *t, size_t done)
{
	struct rule *r;
	size_t i;

	for (i = 0; i < rule_count; i++) {
		r = &rules[i];
		if (r->point == POINT_TX && rule_is_of(r, t) &&
		    rule_counts_call(r, &t->call) &&
		    rule_fits_bytes(r, t, done) && rule_count_one(r))
			r->is_primed = true;
	}
}

bool
rules_missed(json_t *out)
{
	size_t i;

	for (i = 0; i < rule_count; i++) {
		if (rules[i].hits == 0)
			(void)json_array_append_new(
			    out, json_integer((json_int_t)i + 1));
	}
	return json_array_size(out) != 0;
}
