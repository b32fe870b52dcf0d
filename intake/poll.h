/*
 * One poll of the feed, from the request with its small retry inside to what
 * the answer means (feed.md 1.5). The repair walk uses it as the feed does.
 */
#ifndef INTAKE_POLL_H
#define INTAKE_POLL_H

#include "common/config.h"
#include "intake/api.h"
#include "intake/page.h"

enum poll_kind {
	POLL_PAGE,
	POLL_POSITION_INVALID,
	POLL_FILTER_INVALID,
	POLL_FILTER_CHANGED,
	POLL_GONE,
	POLL_UNAUTHORIZED,
	POLL_THROTTLED, /* come back after retry_after_ms */
	POLL_TRANSIENT,
	POLL_REDIRECT,
	POLL_MALFORMED,
	POLL_UNRECOVERABLE,
	POLL_NO_CREDENTIAL, /* the token endpoint refused for good */
	POLL_KINDS
};

/* Lives as long as the callback runs. */
struct poll_result {
	enum poll_kind kind;
	int status;             /* 0: no answer */
	struct page *page;      /* POLL_PAGE; set to NULL when taken */
	int64_t retry_after_ms; /* POLL_THROTTLED */
	int64_t epoch_after_id; /* POLL_GONE */
	const char *resume;     /* POLL_GONE */
	size_t resume_len;
	struct json_text message;       /* POLL_FILTER_INVALID: the server's */
	char text[ERROR_TEXT_MAX + 32]; /* what happened, in words of ours */
};

struct poll;
struct poll_ops {
	/* An attempt failed and there will be another; TEXT as in a result. */
	void (*again)(const char *text, void *arg);
	/* Once, from the loop; the poll is gone when it returns. */
	void (*done)(struct poll_result *result, void *arg);
};

/*
 * Ask for the page behind QUERY. LIMITS are copied, OPS outlives the poll.
 * Cancelled, it calls neither.
 */
struct poll *poll_start(struct api *api, const char *query,
    const int64_t limits[LIMIT_COUNT], const struct poll_ops *ops, void *arg);
/* NULL is fine, and so is the poll's own DONE. */
void poll_cancel(struct poll *p);

/* A word for logs and status: "throttled". */
const char *poll_kind_name(enum poll_kind kind);
/*
 * What a status with this body means; for poll.c and its tests. RESULT's
 * texts may point into *TREE, which the caller releases.
 */
void poll_classify(
    const struct http_answer *http, struct poll_result *result, json_t **tree);
/* Is this status asked again inside the call? */
bool poll_is_retried(int status);

#endif
