#include <stdlib.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "intake/policy.h"

struct copying {
	struct config_reader reader;
	struct config *whole;
};

static void
copy_message(struct msg *m, void *arg)
{
	struct copying *c = arg;
	struct error e;

	c->whole = config_reader_take(&c->reader, m, &e);
	if (c->whole == NULL && e.text[0] != '\0')
		fatalx("configuration: %s", e.text);
}

struct policy *
policy_new(const struct config *config)
{
	struct policy *p = xcalloc(1, sizeof(*p));
	struct copying c = {0};

	config_write(config, copy_message, &c);
	p->config = c.whole;
	p->refs = 1;
	return p;
}

struct policy *
policy_ref(struct policy *p)
{
	p->refs++;
	return p;
}

void
policy_unref(struct policy *p)
{
	if (p == NULL || --p->refs > 0)
		return;
	config_free(p->config);
	free(p);
}
