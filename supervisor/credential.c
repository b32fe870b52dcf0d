#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/paths.h"
#include "common/url.h"
#include "common/xmalloc.h"
#include "supervisor/document.h"
#include "supervisor/supervisor.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* Where the secret is sent: never in the clear beyond this machine. */
static int
read_endpoint(const struct document *d, const struct place *at,
    const json_t *value, const struct document_key *key, void *target)
{
	struct credential *c = target;
	struct error why;
	struct url url;

	if (document_string(d, at, value, key, target) == -1)
		return -1;
	if (url_parse(
		c->token_endpoint, strlen(c->token_endpoint), &url, &why) == -1)
		return document_refuse(d, at, "%s", why.text);
	if (url.userinfo.present || url.fragment.present)
		return document_refuse(d, at, "has a user or a fragment in it");
	if (url.scheme.len == 5 && memcmp(url.scheme.bytes, "https", 5) == 0)
		return 0;
	if (url.scheme.len == 4 && memcmp(url.scheme.bytes, "http", 4) == 0 &&
	    url_is_loopback(&url))
		return 0;
	return document_refuse(
	    d, at, "neither https nor http on this very machine");
}

static const struct document_key keys[] = {
    {"client_id", true, document_string, offsetof(struct credential, client_id),
	1, 512},
    {"client_secret", true, document_string,
	offsetof(struct credential, client_secret), 1, 1024},
    {"token_endpoint", true, read_endpoint,
	offsetof(struct credential, token_endpoint), 1, 2048},
    {"scope", false, document_string, offsetof(struct credential, scope), 0,
	16},
    {"resource", false, document_string, offsetof(struct credential, resource),
	0, 512},
};

static void
wipe(char *text)
{
	if (text != NULL)
		explicit_bzero(text, strlen(text));
}

/* jansson's copies of the values, too. */
static void
tree_wipe(json_t *root)
{
	const char *name;
	json_t *value;

	json_object_foreach (root, name, value) {
		if (json_is_string(value))
			explicit_bzero((char *)json_string_value(value),
			    json_string_length(value));
	}
	json_decref(root);
}

static int
credential_parse(const char *file, char *text, size_t len, struct credential *c,
    struct error *e)
{
	struct document d = {file, text, len, e};
	json_t *root = document_parse(&d, NULL);
	int result;

	if (root == NULL)
		return -1;
	result = document_object(&d, NULL, root, keys, COUNT(keys), c);
	tree_wipe(root);
	if (c->scope == NULL)
		c->scope = xstrdup("");
	if (c->resource == NULL)
		c->resource = xstrdup("");
	return result;
}

int
credential_load(
    const struct paths *paths, struct credential *c, struct error *e)
{
	char *file, *text;
	size_t len;
	int result;

	memset(c, 0, sizeof(*c));
	(void)xasprintf(&file, "%s/credentials.json", paths->config_dir);
	result = path_read_private(
	    file, geteuid(), 077, DOCUMENT_MAX, &text, &len, e);
	if (result == 0) {
		result = credential_parse(file, text, len, c, e);
		explicit_bzero(text, len);
		free(text);
	}
	if (result == -1)
		credential_wipe(c);
	free(file);
	return result;
}

void
credential_wipe(struct credential *c)
{
	char **const texts[] = {&c->client_id, &c->client_secret,
	    &c->token_endpoint, &c->scope, &c->resource};
	size_t i;

	for (i = 0; i < COUNT(texts); i++) {
		wipe(*texts[i]);
		free(*texts[i]);
		*texts[i] = NULL;
	}
}
