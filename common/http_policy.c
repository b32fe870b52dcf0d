#include <sys/stat.h>

#include <fcntl.h>
#ifdef __GLIBC__
#include <nss.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "common/http.h"
#include "common/http_policy.h"
#include "common/log.h"
#include "common/url.h"
#include "common/xmalloc.h"

#define CERTIFICATES_MAX (8 * 1024 * 1024)

static struct curl_blob certificates; /* read before the walls go up */

static int
certificates_read(const char *path, struct error *e)
{
	struct stat st;
	size_t len = 0;
	ssize_t n = 1;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd == -1 || fstat(fd, &st) == -1)
		return error_errno(e, "%s", path);
	if (!S_ISREG(st.st_mode) || st.st_size == 0 ||
	    st.st_size > CERTIFICATES_MAX)
		return error_set(e, "%s: no file of certificates", path);
	certificates.data = xmalloc((size_t)st.st_size);
	while (len < (size_t)st.st_size && n > 0) {
		n = read(fd, (char *)certificates.data + len,
		    (size_t)st.st_size - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (n == -1)
		return error_errno(e, "%s", path);
	(void)close(fd);
	certificates.len = len;
	certificates.flags = CURL_BLOB_NOCOPY;
	return 0;
}

/* The first file there is; the names are those of the large systems. */
static int
certificates_find(struct error *e)
{
	static const char *const paths[] = {
	    "/etc/ssl/certs/ca-certificates.crt",
	    "/etc/pki/tls/certs/ca-bundle.crt",
	    "/etc/ssl/ca-bundle.pem",
	    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	    "/etc/ssl/cert.pem",
	};
	size_t i;

	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (access(paths[i], R_OK) == 0)
			return certificates_read(paths[i], e);
	log_warnx("no file of certificates: https cannot be verified");
	return 0;
}

int
http_prepare(struct error *e)
{
	CURLcode code;

	code = curl_global_init(CURL_GLOBAL_DEFAULT);
	if (code != CURLE_OK)
		return error_set(e, "curl: %s", curl_easy_strerror(code));
#ifdef __GLIBC__
	/* Else nsswitch.conf may name modules that the walls keep out. */
	(void)__nss_configure_lookup("hosts", "files dns");
#endif
	tzset(); /* reads a file, which a date would do later */
	return certificates_find(e);
}

/* Printable and without blanks: nothing that could start another header. */
static bool
bearer_is_plain(const char *bearer)
{
	const char *p;

	for (p = bearer; *p != '\0'; p++)
		if (*p <= 0x20 || *p >= 0x7f)
			return false;
	return p > bearer;
}

bool
http_policy_permits(const struct http_call *c, bool *is_loopback)
{
	struct url u;

	if (strlen(c->url) > HTTP_URL_MAX ||
	    url_parse(c->url, strlen(c->url), &u, NULL) == -1 ||
	    u.userinfo.present)
		return false;
	*is_loopback = url_is_loopback(&u);
	if (!(u.scheme.len == 5 &&
		strncasecmp(u.scheme.bytes, "https", 5) == 0) &&
	    !(*is_loopback && u.scheme.len == 4 &&
		strncasecmp(u.scheme.bytes, "http", 4) == 0))
		return false;
	return c->bearer == NULL || bearer_is_plain(c->bearer);
}

void
http_policy_set(CURL *easy, bool is_loopback)
{
	SET(easy, CURLOPT_NOSIGNAL, 1L);
	SET(easy, CURLOPT_FOLLOWLOCATION, 0L);
	SET(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	SET(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(easy, CURLOPT_HTTP09_ALLOWED, 0L);
	SET(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	SET(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	SET(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	SET(easy, CURLOPT_PROTOCOLS_STR, is_loopback ? "http,https" : "https");
	SET(easy, CURLOPT_CAPATH, NULL);
	if (certificates.data != NULL)
		SET(easy, CURLOPT_CAINFO_BLOB, &certificates);
	else
		SET(easy, CURLOPT_CAINFO, NULL);
	if (is_loopback)
		SET(easy, CURLOPT_PROXY, "");
	/* Else a request that is given up waits for its resolver's thread. */
	SET(easy, CURLOPT_QUICK_EXIT, 1L);
}
