#include <stdlib.h>
#include <string.h>

#include <cmark.h>

#include "common/buffer.h"
#include "common/log.h"
#include "common/text.h"
#include "common/utf8.h"
#include "mcpd/markup.h"

/* A node of raw HTML gives way to one that shows its source. */
static cmark_node *
html_as_text(cmark_node *html)
{
	cmark_node *text = cmark_node_new(CMARK_NODE_TEXT), *block = NULL;
	cmark_node *shown = text;

	if (text == NULL ||
	    !cmark_node_set_literal(text, cmark_node_get_literal(html)))
		fatalx("cmark: no text node");
	if (cmark_node_get_type(html) == CMARK_NODE_HTML_BLOCK) {
		shown = block = cmark_node_new(CMARK_NODE_PARAGRAPH);
		if (block == NULL || !cmark_node_append_child(block, text))
			fatalx("cmark: no paragraph");
	}
	if (!cmark_node_replace(html, shown))
		fatalx("cmark: a node cannot be replaced");
	cmark_node_free(html);
	return shown;
}

static void
show_raw_html(cmark_node *document)
{
	cmark_iter *iter = cmark_iter_new(document);
	cmark_event_type event;
	cmark_node *node;

	while ((event = cmark_iter_next(iter)) != CMARK_EVENT_DONE) {
		node = cmark_iter_get_node(iter);
		if (event != CMARK_EVENT_ENTER ||
		    (cmark_node_get_type(node) != CMARK_NODE_HTML_BLOCK &&
			cmark_node_get_type(node) != CMARK_NODE_HTML_INLINE))
			continue;
		cmark_iter_reset(iter, html_as_text(node), CMARK_EVENT_EXIT);
	}
	cmark_iter_free(iter);
}

char *
markup_markdown_html(const char *text, size_t len, size_t *out_len)
{
	cmark_node *document =
	    cmark_parse_document(text, len, CMARK_OPT_VALIDATE_UTF8);
	char *html;

	if (document == NULL)
		fatalx("cmark: no document");
	show_raw_html(document);
	html = cmark_render_html(document, CMARK_OPT_DEFAULT);
	cmark_node_free(document);
	*out_len = strlen(html);
	while (*out_len != 0 && html[*out_len - 1] == '\n')
		html[--*out_len] = '\0';
	return html;
}

char *
markup_plain_text(const char *text, size_t len, size_t *out_len)
{
	struct buffer out = {0};
	const char *nul;
	char *clean;
	size_t size;

	for (; len != 0 && strchr(" \t\r\n", *text) != NULL && *text != '\0';
	     len--)
		text++;
	while (len != 0 && strchr(" \t\r\n", text[len - 1]) != NULL &&
	    text[len - 1] != '\0')
		len--;
	for (; (nul = memchr(text, '\0', len)) != NULL; text = nul + 1) {
		size = (size_t)(nul - text);
		buffer_add(&out, text, size);
		buffer_add_text(&out, UTF8_REPLACEMENT_TEXT);
		len -= size + 1;
	}
	buffer_add(&out, text, len);
	clean = text_make_utf8(out.bytes, out.len, out_len);
	buffer_free(&out);
	return clean;
}

char *
markup_plain_html(const char *text, size_t len, size_t *out_len)
{
	struct buffer out = {0};
	char *plain = markup_plain_text(text, len, &len);
	char *escaped = text_escape_html(plain, len, &len);
	const char *at;

	buffer_add_text(&out, "<div>");
	for (at = escaped; *at != '\0'; at++) {
		if (*at == '\n')
			buffer_add_text(&out, "<br>\n");
		else if (*at != '\r')
			buffer_add_char(&out, *at);
	}
	buffer_add_text(&out, "</div>");
	free(escaped);
	free(plain);
	return buffer_take(&out, out_len);
}
