#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/child.h"
#include "supervisor/guests.h"
#include "supervisor/kernel.h"
#include "supervisor/notify.h"
#include "supervisor/reload.h"

#define FILE_NAME "connect.json"
/* An editor's create, write and rename are one change. */
#define SETTLE_MS 50

struct reload {
	struct supervisor *sv;
	int fd; /* of the watch; -1 while its directory is gone */
	struct event *watch;
	struct event *timer; /* of the next reading */
	int64_t read_ms;     /* of the last one */
	struct error error;
};

/* ---- generations --------------------------------------------------------- */

void
reload_first(struct supervisor *sv, struct settings *s)
{
	sv->settings = s;
	sv->generation = s->config->generation = 1;
	s->config->readable = true;
}

static void
generation_next(struct supervisor *sv)
{
	sv->generation++;
	sv->settings->config->generation = sv->generation;
	sv->settings->config->readable = !sv->config_unreadable;
	children_configure(sv);
	guests_configure(sv);
}

/* It stays in force for what runs, and authorises nothing new. */
static void
settings_mark_unreadable(struct supervisor *sv, const struct error *e)
{
	bool was = sv->config_unreadable;

	sv->reload->error = *e;
	log_warnx("%s; nothing new is admitted or started", e->text);
	sv->config_unreadable = true;
	if (!was)
		generation_next(sv);
}

static void
settings_in_force(struct supervisor *sv, const char *what)
{
	sv->config_unreadable = false;
	sv->reload->error.text[0] = '\0';
	generation_next(sv);
	log_info(
	    "%s in force, generation %lld", what, (long long)sv->generation);
}

static bool
same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* What the whole run rests on cannot change under it. */
static int
settings_check_same(
    const struct supervisor *sv, const struct settings *s, struct error *e)
{
	const struct config *now = sv->settings->config, *new = s->config;

	if (new->account_id != now->account_id ||
	    new->agent_id != now->agent_id)
		return error_set(e,
		    "%s/" FILE_NAME ": it names another agent "
		    "or account, which needs a restart",
		    sv->paths.config_dir);
	if (sv->is_root &&
	    !same_text(s->worker.user, sv->settings->worker.user))
		return error_set(e,
		    "%s/" FILE_NAME ": worker.user: another "
		    "user needs a restart",
		    sv->paths.config_dir);
	return 0;
}

static void reload_soon(struct reload *r);

/* Take it; a watch that is over is closed. */
static enum watch_news
news_take(struct reload *r)
{
	enum watch_news news = kernel_watch_read(r->fd, FILE_NAME);

	if (news == WATCH_GONE) {
		event_free(r->watch);
		r->watch = NULL;
		(void)close(r->fd);
		r->fd = -1;
	}
	return news;
}

/* What had changed by now is in what is read: it is no further generation. */
static struct settings *
settings_read(struct supervisor *sv, struct error *e)
{
	struct reload *r = sv->reload;
	struct settings *s;

	if (r->fd != -1 && news_take(r) == WATCH_GONE)
		reload_soon(r);
	else if (r->fd != -1)
		(void)evtimer_del(r->timer);
	s = settings_load(&sv->paths, &sv->options, e);
	r->read_ms = clock_monotonic_ms();
	if (s != NULL && settings_check_same(sv, s, e) == -1) {
		settings_free(s);
		return NULL;
	}
	return s;
}

/* The routes of FRESH, and nothing else of it; it is taken over. */
static void
routes_adopt(struct supervisor *sv, struct settings *fresh)
{
	struct config *now = sv->settings->config, *new = fresh->config;
	struct config_route *routes = now->routes;
	size_t count = now->route_count;

	now->routes = new->routes;
	now->route_count = new->route_count;
	new->routes = routes;
	new->route_count = count;
	settings_free(fresh);
	settings_in_force(sv, "the routes of connect.json are");
}

/* ---- the file has changed ------------------------------------------------ */

static void reload_watch(struct reload *r);

static void
reload_changed(evutil_socket_t fd, short what, void *arg)
{
	struct reload *r = arg;
	struct supervisor *sv = r->sv;
	struct settings *s;
	struct error e;

	(void)fd;
	(void)what;
	if (r->fd == -1)
		reload_watch(r);
	if (sv->stopping)
		return;
	s = settings_read(sv, &e);
	if (s == NULL) {
		settings_mark_unreadable(sv, &e);
		return;
	}
	routes_adopt(sv, s);
}

/* At most one reading every limits.config_cache. */
static void
reload_soon(struct reload *r)
{
	int64_t now = clock_monotonic_ms(), wait;
	struct timeval tv;

	wait = r->read_ms - now +
	    r->sv->settings->config->limits[LIMIT_config_cache];
	if (wait < SETTLE_MS)
		wait = SETTLE_MS;
	tv.tv_sec = wait / 1000;
	tv.tv_usec = wait % 1000 * 1000;
	if (!evtimer_pending(r->timer, NULL))
		(void)evtimer_add(r->timer, &tv);
}

static void
reload_on_watch(evutil_socket_t fd, short what, void *arg)
{
	struct reload *r = arg;

	(void)fd;
	(void)what;
	if (news_take(r) != WATCH_NOTHING)
		reload_soon(r);
}

/* While the directory is not there it is looked for at every reading. */
static void
reload_watch(struct reload *r)
{
	r->fd = kernel_watch_open(r->sv->paths.config_dir);
	if (r->fd == -1) {
		reload_soon(r);
		return;
	}
	r->watch = event_new(
	    r->sv->base, r->fd, EV_READ | EV_PERSIST, reload_on_watch, r);
	if (r->watch == NULL || event_add(r->watch, NULL) == -1)
		fatalx("%s: no event", r->sv->paths.config_dir);
}

void
reload_init(struct supervisor *sv)
{
	struct reload *r = xcalloc(1, sizeof(*r));

	r->sv = sv;
	r->fd = -1;
	r->read_ms = clock_monotonic_ms();
	r->timer = evtimer_new(sv->base, reload_changed, r);
	if (r->timer == NULL)
		fatalx("reload: no event");
	sv->reload = r;
	reload_watch(r);
}

const char *
reload_error(const struct supervisor *sv)
{
	return sv->config_unreadable ? sv->reload->error.text : "";
}

/* ---- an operator's reload ------------------------------------------------ */

/* What waits for a person, and what waits for its turn, tries again. */
static void
children_reload(struct supervisor *sv)
{
	int role;

	for (role = 0; role < ROLE_COUNT; role++) {
		if (sv->children[role] != NULL)
			child_happens(sv->children[role], CHILD_RELOAD);
	}
}

static int
reload_all(struct supervisor *sv, struct error *e)
{
	struct settings *s = settings_read(sv, e);
	struct child *outbox = sv->children[ROLE_OUTBOX];
	struct error why;

	if (s == NULL) {
		settings_mark_unreadable(sv, e);
		return -1;
	}
	settings_free(sv->settings);
	sv->settings = s;
	settings_in_force(sv, "connect.json is");
	if (outbox != NULL && child_is_there(outbox) &&
	    child_tell_credential(outbox, e) == -1) {
		why = *e;
		(void)error_set(e,
		    "%s; connect.json is in force, the credential before stays "
		    "in use",
		    why.text);
		log_warnx("%s", e->text);
		return -1;
	}
	children_reload(sv);
	return 0;
}

int
supervisor_reload(struct supervisor *sv, struct error *e)
{
	int rc;

	if (sv->stopping)
		return error_set(e, "connectd is stopping");
	notify_reloading();
	rc = reload_all(sv, e);
	(void)notify_send("READY=1\n");
	return rc;
}
