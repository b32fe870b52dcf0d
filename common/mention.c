#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/buffer.h"
#include "common/mention.h"
#include "common/sgid.h"
#include "common/text.h"
#include "common/xmalloc.h"

/* A text being walked, and where the walk stands. */
struct markup {
	const char *html;
	size_t len;
	size_t at;
};

struct piece {
	size_t start;
	size_t len;
};

enum mark_kind {
	MARK_NONE, /* the markup ends: nothing more counts */
	MARK_START,
	MARK_END,
	MARK_OTHER, /* comment, declaration, instruction */
};

struct mark {
	size_t start; /* of its `<` */
	struct piece name;
	struct piece sgid; /* the first one's value, as written */
	bool has_sgid;
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static bool
is_name_char(char c)
{
	return c == '\0' || strchr(" \t\n\r\f/><=\"'", c) == NULL;
}

/* One byte past the next BYTES from FROM on; false when there is none. */
static bool
move_past(struct markup *m, size_t from, const char *bytes)
{
	const char *found;

	found = memmem(m->html + from, m->len - from, bytes, strlen(bytes));
	if (found == NULL)
		return false;
	m->at = (size_t)(found - m->html) + strlen(bytes);
	return true;
}

static struct piece
tag_name(struct markup *m)
{
	struct piece name = {.start = m->at};

	while (m->at < m->len && is_name_char(m->html[m->at]))
		m->at++;
	name.len = m->at - name.start;
	return name;
}

static bool
piece_is(const struct markup *m, struct piece p, const char *name)
{
	return p.len == strlen(name) &&
	    strncasecmp(m->html + p.start, name, p.len) == 0;
}

static void
skip_blanks(struct markup *m)
{
	while (m->at < m->len && is_blank(m->html[m->at]))
		m->at++;
}

/* Quotes and dots belong to an attribute's name: data.sgid is not sgid. */
static struct piece
attribute_name(struct markup *m)
{
	struct piece name = {.start = m->at};
	char c;

	for (; m->at < m->len; m->at++) {
		c = m->html[m->at];
		if (is_blank(c) || c == '=' || c == '>' || c == '/')
			break;
	}
	name.len = m->at - name.start;
	return name;
}

/* A value behind its `=`; false when its closing quote is missing. */
static bool
attribute_value(struct markup *m, struct piece *value)
{
	const char *end;
	char quote;

	skip_blanks(m);
	quote = m->at < m->len ? m->html[m->at] : '\0';
	if (quote == '"' || quote == '\'') {
		value->start = ++m->at;
		end = memchr(m->html + m->at, quote, m->len - m->at);
		if (end == NULL)
			return false;
		value->len = (size_t)(end - m->html) - value->start;
		m->at += value->len + 1;
		return true;
	}
	value->start = m->at;
	while (m->at < m->len && !is_blank(m->html[m->at]) &&
	    m->html[m->at] != '>')
		m->at++;
	value->len = m->at - value->start;
	return true;
}

/*
 * One attribute. A name is empty where an `=` stands without one: then the
 * byte after its value is stepped over as well, even a `>`. That is how the
 * connector reads whose admissions ours must equal; a browser would not, but
 * Basecamp's sanitizer lets no such markup through, and what counts is that
 * this one walk decides both what admits and what is stripped.
 */
static bool
attribute_next(struct markup *m, struct mark *mark)
{
	struct piece name = attribute_name(m), value = {.start = m->at};

	skip_blanks(m);
	if (m->at < m->len && m->html[m->at] == '=') {
		m->at++;
		if (!attribute_value(m, &value))
			return false;
	}
	if (name.len == 0)
		m->at++;
	if (!mark->has_sgid && piece_is(m, name, "sgid")) {
		mark->has_sgid = true;
		mark->sgid = value;
	}
	return true;
}

/* A start tag's attributes and its `>`; false when the tag never ends. */
static bool
tag_rest(struct markup *m, struct mark *mark)
{
	while (m->at < m->len) {
		if (m->html[m->at] == '>') {
			m->at++;
			return true;
		}
		if (is_blank(m->html[m->at]) || m->html[m->at] == '/')
			m->at++;
		else if (!attribute_next(m, mark))
			return false;
	}
	return false;
}

/* What begins with the `<` at mark->start; a bare one is MARK_OTHER. */
static enum mark_kind
mark_read(struct markup *m, struct mark *mark)
{
	size_t from = mark->start + 1;
	char c = from < m->len ? m->html[from] : '\0';

	m->at = from;
	if (c == '!' && m->len - from >= 3 &&
	    memcmp(m->html + from, "!--", 3) == 0)
		return move_past(m, from, "-->") ? MARK_OTHER : MARK_NONE;
	if (c == '!' || c == '?')
		return move_past(m, from, ">") ? MARK_OTHER : MARK_NONE;
	if (c == '/') {
		m->at++;
		mark->name = tag_name(m);
		return move_past(m, m->at, ">") ? MARK_END : MARK_NONE;
	}
	mark->name = tag_name(m);
	if (mark->name.len == 0)
		return MARK_OTHER;
	return tag_rest(m, mark) ? MARK_START : MARK_NONE;
}

static enum mark_kind
mark_next(struct markup *m, struct mark *mark)
{
	const char *found;

	*mark = (struct mark){0};
	if (m->at >= m->len)
		return MARK_NONE;
	found = memchr(m->html + m->at, '<', m->len - m->at);
	if (found == NULL)
		return MARK_NONE;
	mark->start = (size_t)(found - m->html);
	return mark_read(m, mark);
}

static bool
mark_person(const struct markup *m, const struct mark *mark, int64_t *person)
{
	char *sgid;
	size_t len;
	bool is_person;

	if (!mark->has_sgid || !piece_is(m, mark->name, "bc-attachment"))
		return false;
	sgid = text_decode_entities(
	    m->html + mark->sgid.start, mark->sgid.len, &len);
	is_person = sgid_person(sgid, len, person);
	free(sgid);
	return is_person;
}

void
mention_walk(const char *html, size_t len, mention_visit visit, void *arg)
{
	struct markup m = {.html = html, .len = len};
	struct mark mark;
	struct mention found;
	enum mark_kind kind;

	while ((kind = mark_next(&m, &mark)) != MARK_NONE) {
		if (kind != MARK_START ||
		    !mark_person(&m, &mark, &found.person))
			continue;
		found.start = mark.start;
		found.tag_end = m.at;
		if (!visit(&found, arg))
			return;
	}
}

/* The persons found so far; the list is the caller's. */
struct finding {
	int64_t *ids;
	size_t count;
	size_t max;
};

static bool
find_visit(const struct mention *m, void *arg)
{
	struct finding *f = arg;
	size_t i;

	for (i = 0; i < f->count; i++)
		if (f->ids[i] == m->person)
			return true;
	if (f->count < f->max)
		f->ids[f->count++] = m->person;
	return f->count < f->max;
}

size_t
mention_find(const char *html, size_t len, int64_t *ids, size_t max)
{
	struct finding f = {.ids = ids, .max = max};

	if (max != 0)
		mention_walk(html, len, find_visit, &f);
	return f.count;
}

struct asking {
	int64_t person;
	bool is_there;
};

static bool
has_visit(const struct mention *m, void *arg)
{
	struct asking *a = arg;

	a->is_there = m->person == a->person;
	return !a->is_there;
}

bool
mention_has(const char *html, size_t len, int64_t person)
{
	struct asking a = {.person = person};

	mention_walk(html, len, has_visit, &a);
	return a.is_there;
}

/* Names of what was opened inside the element, the innermost last. */
struct opened {
	struct piece *names;
	size_t count;
	size_t size;
};

static void
opened_push(struct opened *o, struct piece name)
{
	if (o->count == o->size) {
		o->size = o->size == 0 ? 16 : o->size * 2;
		o->names = xreallocarray(o->names, o->size, sizeof(*o->names));
	}
	o->names[o->count++] = name;
}

/* Close the innermost one of that name and what is in it. */
static bool
opened_pop(struct opened *o, const struct markup *m, struct piece name)
{
	size_t i;

	for (i = o->count; i-- > 0;)
		if (o->names[i].len == name.len &&
		    strncasecmp(m->html + o->names[i].start,
			m->html + name.start, name.len) == 0) {
			o->count = i;
			return true;
		}
	return false;
}

static bool
is_void(const struct markup *m, struct piece name)
{
	static const char *const voids[] = {
	    "br", "hr", "img", "source", "input", "meta", "link"};
	size_t i;

	for (i = 0; i < sizeof(voids) / sizeof(voids[0]); i++)
		if (piece_is(m, name, voids[i]))
			return true;
	return false;
}

/* Look for the element's own end tag; false when something else ends it. */
static bool
find_end(struct markup *m, struct opened *o)
{
	struct mark mark;
	enum mark_kind kind;
	bool is_attachment;

	while ((kind = mark_next(m, &mark)) != MARK_NONE) {
		if (kind == MARK_OTHER)
			continue;
		is_attachment = piece_is(m, mark.name, "bc-attachment");
		if (is_attachment)
			return kind == MARK_END;
		if (kind == MARK_START && !is_void(m, mark.name))
			opened_push(o, mark.name);
		if (kind == MARK_END && !opened_pop(o, m, mark.name))
			return false;
	}
	return false;
}

size_t
mention_end(const char *html, size_t len, const struct mention *mention)
{
	struct markup m = {.html = html, .len = len, .at = mention->tag_end};
	struct opened opened = {0};
	size_t end = mention->tag_end;

	if (html[mention->tag_end - 2] == '/')
		return end;
	if (find_end(&m, &opened))
		end = m.at;
	free(opened.names);
	return end;
}

struct stripping {
	const char *html;
	size_t len;
	int64_t person;
	size_t copied;
	struct buffer out;
};

static bool
strip_visit(const struct mention *m, void *arg)
{
	struct stripping *s = arg;

	if (m->person != s->person)
		return true;
	buffer_add(&s->out, s->html + s->copied, m->start - s->copied);
	buffer_add_char(&s->out, ' ');
	s->copied = mention_end(s->html, s->len, m);
	return true;
}

enum mention_stripped
mention_strip(
    const char *html, size_t len, int64_t person, char **out, size_t *out_len)
{
	struct stripping s = {.html = html, .len = len, .person = person};
	char *stripped;

	if (!mention_has(html, len, person)) {
		*out = xstrndup(html, len);
		*out_len = len;
		return MENTION_UNCHANGED;
	}
	mention_walk(html, len, strip_visit, &s);
	buffer_add(&s.out, html + s.copied, len - s.copied);
	stripped = buffer_take(&s.out, &len);
	if (!mention_has(stripped, len, person)) {
		*out = stripped;
		*out_len = len;
		return MENTION_STRIPPED;
	}
	*out = text_escape_html(stripped, len, out_len);
	free(stripped);
	return MENTION_ESCAPED;
}
