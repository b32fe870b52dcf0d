/*
 * libcurl inside the walls of those who speak HTTP: names in its resolver
 * thread, a connection, and TLS as far as a peer that says nothing lets it.
 */
#include <curl/curl.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/sandbox.h"
#include "intake/profile.h"
#include "outbox/profile.h"
#include "tests/sandbox/scene.h"

#define SKIPPED 77
#define HANDSHAKE_MS 300L

int __nss_configure_lookup(const char *, const char *);

static CURL *easy;

/* What needs files is done before, as in a role's prepare(). */
static int
enter(const void *arg)
{
	struct sandbox_report report;
	struct error e = {0, ""};

	(void)__nss_configure_lookup("hosts", "files dns");
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
	    (easy = curl_easy_init()) == NULL)
		return -1;
	if (sandbox_enter(arg, scene.inside, false, &report, &e) == 0)
		return 0;
	(void)dprintf(STDERR_FILENO, "%s\n", e.text);
	return -1;
}

static CURLcode
perform(const char *scheme)
{
	char url[64];

	(void)snprintf(
	    url, sizeof(url), "%s://localhost:%u/", scheme, scene.port);
	(void)curl_easy_setopt(easy, CURLOPT_URL, url);
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
	return curl_easy_perform(easy);
}

static int
act_connect(void)
{
	(void)curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
	return (int)perform("http");
}

/* Our hello goes out and waits: all of the library's set-up has passed. */
static int
act_handshake(void)
{
	(void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, HANDSHAKE_MS);
	return perform("https") == CURLE_OPERATION_TIMEDOUT ? 0 : EIO;
}

/* A certificate file is no file of a role's; it takes the bundle along. */
static int
act_no_bundle_file(void)
{
	(void)curl_easy_setopt(easy, CURLOPT_CAINFO, scene.outside_file);
	(void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, HANDSHAKE_MS);
	return perform("https") == CURLE_SSL_CACERT_BADFILE ? 0 : EIO;
}

int
main(void)
{
	static const struct {
		const char *name;
		int (*act)(void);
	} acts[] = {
	    {"connect", act_connect},
	    {"handshake", act_handshake},
	    {"bundle from a file", act_no_bundle_file},
	};
	int wrong = 0;
	size_t i;

	if (sandbox_landlock_abi() < 2) {
		(void)printf("curl: no Landlock of ABI 2 in this kernel\n");
		return SKIPPED;
	}
	scene_make();
	for (i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		wrong += scene_expect("intake", acts[i].name, 0,
		    scene_try(enter, &intake_profile, acts[i].act));
		wrong += scene_expect("outbox", acts[i].name, 0,
		    scene_try(enter, &outbox_profile, acts[i].act));
	}
	scene_remove();
	(void)printf("curl: %zu tried, %d not as expected\n", 2 * i, wrong);
	return wrong != 0;
}
