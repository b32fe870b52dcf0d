/*
 * What curl may do at all, whatever the request: the inside of common/http.
 */
#ifndef COMMON_HTTP_POLICY_H
#define COMMON_HTTP_POLICY_H

#include <curl/curl.h>
#include <stdbool.h>

#include "common/http.h"
#include "common/log.h"

static inline void
http_option_check(CURLcode code)
{
	if (code != CURLE_OK)
		fatalx("http: %s", curl_easy_strerror(code));
}

/* A macro, so that curl's own checks of the value's type apply. */
#define SET(easy, option, value) \
	http_option_check(curl_easy_setopt(easy, option, value))

/* May this be sent: https or loopback, a bearer that is one word. */
bool http_policy_permits(const struct http_call *c, bool *is_loopback);
/* The options that hold for every request. */
void http_policy_set(CURL *easy, bool is_loopback);

#endif
