#include "intake/entry.h"

static bool
has_since(const struct entry_facts *f)
{
	return f->since > 0 && !f->has_saved;
}

static bool
is_reentry_served(const struct entry_facts *f)
{
	return f->is_reentry && f->served_id > 0;
}

static bool
is_reentry(const struct entry_facts *f)
{
	return f->is_reentry;
}

static bool
has_position(const struct entry_facts *f)
{
	return *f->position != '\0';
}

static bool
has_served(const struct entry_facts *f)
{
	return f->served_id > 0;
}

static bool
has_lineage_served(const struct entry_facts *f)
{
	return f->lineage_served_id > 0;
}

static bool
is_lineage_known(const struct entry_facts *f)
{
	return f->lineage_is_known;
}

static bool
always(const struct entry_facts *f)
{
	(void)f;
	return true;
}

static void
enter_since(const struct entry_facts *f, struct cursor *c)
{
	cursor_set_since(c, f->since);
}

static void
enter_position(const struct entry_facts *f, struct cursor *c)
{
	cursor_set_position(c, f->position);
}

static void
enter_served(const struct entry_facts *f, struct cursor *c)
{
	cursor_set_since(c, f->served_id);
}

static void
enter_lineage(const struct entry_facts *f, struct cursor *c)
{
	cursor_set_since(c, f->lineage_served_id);
}

static void
enter_beginning(const struct entry_facts *f, struct cursor *c)
{
	(void)f;
	cursor_set_since(c, 0);
}

static void
enter_present(const struct entry_facts *f, struct cursor *c)
{
	(void)f;
	cursor_set_bare(c);
}

static const struct {
	bool (*applies)(const struct entry_facts *f);
	void (*enter)(const struct entry_facts *f, struct cursor *c);
	struct entry entry;
} entries[] = {
    {has_since, enter_since, {"--since", false, false}},
    {is_reentry_served, enter_served,
	{"after a refused position", false, false}},
    {is_reentry, enter_beginning,
	{"the beginning, after a refused position", true, false}},
    {has_position, enter_position, {"the saved position", false, false}},
    {has_served, enter_served, {"the last event served", false, false}},
    {has_lineage_served, enter_lineage,
	{"the last event served under other filters", false, false}},
    {is_lineage_known, enter_beginning, {"the beginning", true, false}},
    {always, enter_present, {"the present", false, true}},
};

struct entry
entry_choose(const struct entry_facts *facts, struct cursor *cursor)
{
	size_t i;

	for (i = 0; !entries[i].applies(facts); i++)
		;
	entries[i].enter(facts, cursor);
	return entries[i].entry;
}
