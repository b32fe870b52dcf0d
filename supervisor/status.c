#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/build_id.h"
#include "common/clock.h"
#include "common/json.h"
#include "supervisor/child.h"
#include "supervisor/exec.h"
#include "supervisor/guests.h"
#include "supervisor/reload.h"
#include "supervisor/status.h"

/* ---- one member after the other ------------------------------------------ */

static void
put_comma(struct buffer *b)
{
	char last = b->bytes[b->len - 1];

	if (last != '{' && last != '[')
		buffer_add_char(b, ',');
}

static void
put_name(struct buffer *b, const char *name)
{
	put_comma(b);
	json_write_string(b, name, strlen(name));
	buffer_add_char(b, ':');
}

static void
put_text(struct buffer *b, const char *name, const char *text)
{
	put_name(b, name);
	json_write_string(b, text, strlen(text));
}

static void
put_number(struct buffer *b, const char *name, int64_t number)
{
	put_name(b, name);
	buffer_printf(b, "%lld", (long long)number);
}

static void
put_bool(struct buffer *b, const char *name, bool is)
{
	put_name(b, name);
	buffer_add_text(b, is ? "true" : "false");
}

/* ---- a child ------------------------------------------------------------- */

static void
put_walls(struct buffer *b, const struct child *c)
{
	put_name(b, "walls");
	buffer_add_char(b, '{');
	put_bool(b, "seccomp", c->seccomp);
	put_bool(b, "no_new_privs", c->no_new_privs);
	put_bool(b, "dumpable", c->dumpable);
	put_number(b, "landlock_abi", c->landlock_abi);
	put_text(b, "lacks", c->lacks);
	buffer_add_char(b, '}');
}

static void
put_values(struct buffer *b, const struct child *c)
{
	size_t i;

	put_name(b, "values");
	buffer_add_char(b, '{');
	for (i = 0; i < c->value_count; i++)
		put_text(b, c->values[i].name, c->values[i].text);
	buffer_add_char(b, '}');
}

static void
put_child(struct buffer *b, const struct child *c)
{
	struct timeval due, now;

	put_comma(b);
	buffer_add_char(b, '{');
	put_text(b, "role", role_name(c->role));
	if (c->attempt[0] != '\0')
		put_text(b, "attempt_id", c->attempt);
	put_number(b, "pid", c->pid);
	put_number(b, "uid", c->sv->role_ids[c->role].uid);
	put_text(b, "state", child_state_name(c));
	put_bool(b, "failing", child_is_failing(c));
	put_number(b, "state_ms", clock_monotonic_ms() - c->since_ms);
	put_number(b, "generation", c->generation);
	put_number(b, "restarts", (int64_t)c->restarts);
	put_number(b, "failures", c->failures);
	put_number(b, "own_deaths", (int64_t)c->own_deaths);
	put_number(b, "silences", (int64_t)c->silences);
	put_number(b, "unanswered", (int64_t)peer_unanswered(c->peer));
	if (c->state == CHILD_BACKOFF && evtimer_pending(c->timer, &due) != 0) {
		(void)evutil_gettimeofday(&now, NULL);
		put_number(b, "restart_in_ms",
		    (due.tv_sec - now.tv_sec) * 1000 +
			(due.tv_usec - now.tv_usec) / 1000);
	}
	if (c->state == CHILD_READY)
		put_walls(b, c);
	put_values(b, c);
	put_text(b, "last_words", c->last_words);
	buffer_add_char(b, '}');
}

static void
put_children(struct buffer *b, const struct supervisor *sv)
{
	const struct child *c;
	int role;

	put_name(b, "children");
	buffer_add_char(b, '[');
	for (role = 0; role < ROLE_COUNT; role++) {
		if (sv->children[role] != NULL)
			put_child(b, sv->children[role]);
	}
	TAILQ_FOREACH (c, &sv->mcpds, entry)
		put_child(b, c);
	buffer_add_char(b, ']');
}

/* ---- the supervisor ------------------------------------------------------ */

const char *
status_state(const struct supervisor *sv)
{
	return sv->stopping ? "stopping"
	    : sv->was_ready ? "running"
			    : "starting";
}

static void
put_config(struct buffer *b, const struct supervisor *sv)
{
	const struct config *c = sv->settings->config;

	put_name(b, "config");
	buffer_add_char(b, '{');
	put_number(b, "generation", sv->generation);
	put_bool(b, "unreadable", sv->config_unreadable);
	put_text(b, "error", reload_error(sv));
	put_number(b, "account_id", c->account_id);
	put_number(b, "agent_id", c->agent_id);
	put_text(b, "driver", c->driver);
	put_text(b, "confine", sv->settings->worker.confine);
	put_text(b, "worker_user", sv->worker_account.name);
	put_number(b, "concurrency", c->concurrency);
	put_number(b, "routes", (int64_t)c->route_count);
	buffer_add_char(b, '}');
}

static void
put_supervisor(struct buffer *b, const struct supervisor *sv)
{
	put_name(b, "supervisor");
	buffer_add_char(b, '{');
	put_number(b, "pid", getpid());
	put_text(b, "state", status_state(sv));
	put_text(b, "version", CONNECTD_VERSION);
	put_text(b, "build", build_id);
	put_bool(b, "restart_pending", exec_changed(sv));
	put_text(b, "run_id", sv->run_id);
	put_text(b, "started_at", sv->started_at);
	put_number(b, "uptime_ms", clock_monotonic_ms() - sv->started_ms);
	put_bool(b, "insecure", sv->options.insecure);
	put_text(b, "cgroup", sv->cgroup_base == NULL ? "" : sv->cgroup_base);
	put_number(b, "landlock_abi", sandbox_landlock_abi());
	put_number(b, "live_attempts", (int64_t)attempts_live(sv));
	put_config(b, sv);
	buffer_add_char(b, '}');
}

static void
put_lock(struct buffer *b, const struct supervisor *sv)
{
	put_name(b, "lock_holder");
	buffer_add_char(b, '{');
	put_number(b, "pid", getpid());
	put_text(b, "started_at", sv->started_at);
	put_text(b, "pid_status", "present");
	buffer_add_char(b, '}');
}

void
status_write(const struct supervisor *sv, struct buffer *b, const char *ledger,
    size_t len)
{
	buffer_add_char(b, '{');
	put_text(b, "profile", sv->options.profile);
	put_bool(b, "shadow", false);
	put_lock(b, sv);
	put_supervisor(b, sv);
	put_children(b, sv);
	put_name(b, "guests");
	guests_write(sv, b);
	put_name(b, "silent");
	buffer_add_text(b, ledger == NULL ? "[\"ledger\"]" : "[]");
	put_name(b, "status");
	if (ledger == NULL)
		buffer_add_text(b, "null");
	else
		buffer_add(b, ledger, len);
	buffer_add_char(b, '}');
}

void
status_summary(const struct supervisor *sv, char *out, size_t size)
{
	size_t used, live = attempts_live(sv);
	const struct child *c;
	int role;

	(void)snprintf(out, size, "%s, %zu task%s at work", status_state(sv),
	    live, live == 1 ? "" : "s");
	if (sv->config_unreadable) {
		used = strlen(out);
		(void)snprintf(
		    out + used, size - used, "; connect.json does not load");
	}
	for (role = 0; role < ROLE_COUNT; role++) {
		c = sv->children[role];
		if (c == NULL || c->state == CHILD_READY)
			continue;
		used = strlen(out);
		(void)snprintf(out + used, size - used, "; %s %s",
		    role_name((enum role_id)role), child_state_name(c));
	}
}
