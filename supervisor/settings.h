/*
 * connect.json beyond what supervisor.h says of it (design 7, admission.md 4.1
 * and 5): the parser apart from the file.
 */
#ifndef SUPERVISOR_SETTINGS_H
#define SUPERVISOR_SETTINGS_H

#include "supervisor/document.h"
#include "supervisor/supervisor.h"

/*
 * Judge and parse the text of the file FILE (a name for errors) for whoever
 * has EUID. Looks up worker.user, touches no file. NULL with the error set.
 */
struct settings *settings_parse(const char *file, const char *bytes, size_t len,
    const struct paths *paths, const struct options *options, uid_t euid,
    struct error *e);

/*
 * Does PATH contain, or lie in, one of connectd's own directories (config,
 * state, run-time)? Then its name, else NULL. Both as written and, for what
 * exists, with links resolved; PATH is clean.
 */
const char *settings_own_directory(const struct paths *paths, const char *path);

void string_list_add(struct string_list *list, const char *text);
void string_list_free(struct string_list *list);

/*
 * Which of connectd's own directories lies where every worker may read
 * (/usr, /etc and the like), or NULL.
 */
const char *settings_readable_directory(const struct paths *paths);

/* ---- between the files settings*.c -------------------------------------- */

/* connect.json on its way to struct settings. */
struct draft {
	struct settings *settings;
	const struct paths *paths;
	const struct options *options;
	uid_t euid;
	int64_t version, agent_id, identity_id, operator_id;
	int64_t thread_cap, daily_cap, concurrency, deadline_ms, account_id;
	char *profile, *account, *kind, *mode;
	bool allow_assignments, engine;
};

/* The readers of whole objects, and what is judged when all is read. */
int settings_read_agent(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target);
int settings_read_trust(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target);
int settings_check_trust(const struct document *d, const struct draft *t);
int settings_read_worker(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target);
int settings_check_worker(const struct document *d, const struct draft *t);
/* A clean absolute path that does not touch connectd's own directories. */
int settings_read_directory(const struct document *d, const struct place *at,
    const json_t *value, const struct draft *t, const char **out);

#endif
