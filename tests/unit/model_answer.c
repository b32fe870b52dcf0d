#include <stdio.h>
#include <string.h>

#include "tests/unit/model.h"

static bool
field_is_unknown(const struct model_answer *a, const char *name)
{
	return a->unknown != NULL && is_in(name, a->unknown);
}

/* A field's value in words. */
static void
field_text(
    const struct msg *m, const struct msg_field *f, char *out, size_t size)
{
	const void *at = (const char *)m + f->offset;
	const struct opt *opt = at;
	const struct blob *blob = at;
	const struct ids *ids = at;

	switch (f->kind) {
	case FIELD_I64:
		(void)snprintf(
		    out, size, "%lld", (long long)*(const int64_t *)at);
		return;
	case FIELD_OPT:
		(void)snprintf(out, size, opt->has ? "%lld" : "none",
		    (long long)opt->value);
		return;
	case FIELD_BOOL:
		(void)snprintf(out, size, *(const bool *)at ? "true" : "false");
		return;
	case FIELD_STR:
		(void)snprintf(out, size, "\"%s\"",
		    *(const char *const *)at != NULL ? *(const char *const *)at
						     : "");
		return;
	case FIELD_LARGE:
		(void)snprintf(out, size, "(%.*s)", (int)blob->len,
		    blob->len > 0 ? (const char *)blob->bytes : "");
		return;
	case FIELD_IDS:
		*out = '\0';
		for (size_t i = 0, len = 0; i < ids->count && len < size; i++)
			len += (size_t)snprintf(out + len, size - len, "%s%lld",
			    i > 0 ? "," : "", (long long)ids->list[i]);
		return;
	default: /* descriptors are for the asker to look at */
		*out = '\0';
	}
}

void
model_message_text(const struct msg *m, char *out, size_t size)
{
	const struct msg_info *info = msg_info(m->type);
	char value[300];
	size_t len = (size_t)snprintf(out, size, "%s", info->name);

	for (size_t i = 0; i < info->field_count && len < size; i++) {
		field_text(m, &info->fields[i], value, sizeof(value));
		len += (size_t)snprintf(out + len, size - len, " %s=%s",
		    info->fields[i].name, value);
	}
}

bool
model_answer_matches(const struct model_answer *a, const struct msg *reply,
    char *why, size_t size)
{
	const struct msg_info *info = msg_info(reply->type);
	char due[4096], got[4096];

	if (a->m.type != reply->type) {
		model_message_text(&a->m, due, sizeof(due));
		model_message_text(reply, got, sizeof(got));
		(void)snprintf(why, size, "due %s, got %s", due, got);
		return false;
	}
	for (size_t i = 0; i < info->field_count; i++) {
		const struct msg_field *f = &info->fields[i];

		if (field_is_unknown(a, f->name))
			continue;
		field_text(&a->m, f, due, sizeof(due));
		field_text(reply, f, got, sizeof(got));
		if (strcmp(due, got) == 0)
			continue;
		(void)snprintf(why, size, "%s.%s: due %s, got %s", info->name,
		    f->name, due, got);
		return false;
	}
	return true;
}
