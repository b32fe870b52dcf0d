#include <stdlib.h>

#include "common/xmalloc.h"
#include "mcpd/batch.h"
#include "mcpd/lines.h"
#include "mcpd/stream.h"

/* What a tool said. */
struct part {
	struct result result; /* with an id and a JSON of its own */
	struct buffer response;
};

struct batch {
	struct stream *stream;
	struct buffer line;
	struct part *parts; /* in the order they came */
	size_t part_count;
	size_t holders;
};

struct batch *
batch_new(struct stream *stream)
{
	struct batch *batch = xcalloc(1, sizeof(*batch));

	batch->stream = stream;
	batch->holders = 1;
	return batch;
}

void
batch_hold(struct batch *batch)
{
	batch->holders++;
}

void
batch_add(struct batch *batch, const struct buffer *response)
{
	buffer_add_char(&batch->line, batch->line.len == 0 ? '[' : ',');
	buffer_add(&batch->line, response->bytes, response->len);
}

void
batch_add_result(struct batch *batch, const struct result *r)
{
	struct part *part;

	batch->parts = xreallocarray(
	    batch->parts, batch->part_count + 1, sizeof(*batch->parts));
	part = &batch->parts[batch->part_count++];
	*part = (struct part){.result = *r};
	part->result.id.bytes = xmemdup(r->id.bytes, r->id.len);
	/* As if it were alone. */
	result_write(&part->response, &part->result, LINES_MCPD_MAX);
}

/* ---- the line --------------------------------------------------------- */

static int
part_order(const void *a, const void *b)
{
	const struct part *const *x = a, *const *y = b;
	size_t left = (*x)->response.len, right = (*y)->response.len;

	if (left != right)
		return left < right ? -1 : 1;
	return (*x > *y) - (*x < *y);
}

/*
 * The shortest first: each may have an even share of what is left, and what
 * it does not take is the others'.
 */
static void
parts_fit(struct part **parts, size_t count, size_t room)
{
	struct buffer *response;
	size_t i, share;

	qsort(parts, count, sizeof(struct part *), part_order);
	for (i = 0; i < count; i++) {
		response = &parts[i]->response;
		share = room / (count - i) - 1; /* its comma */
		if (response->len > share) {
			buffer_free(response);
			result_write(response, &parts[i]->result, share);
		}
		room -= response->len + 1;
	}
}

static void
batch_add_parts(struct batch *batch)
{
	struct part **sorted =
	    xreallocarray(NULL, batch->part_count, sizeof(*sorted));
	size_t i;

	for (i = 0; i < batch->part_count; i++)
		sorted[i] = &batch->parts[i];
	parts_fit(
	    sorted, batch->part_count, LINES_MCPD_MAX - 1 - batch->line.len);
	for (i = 0; i < batch->part_count; i++)
		batch_add(batch, &batch->parts[i].response);
	free(sorted);
}

static void
batch_free(struct batch *batch)
{
	struct part *part = batch->parts;

	for (; part < batch->parts + batch->part_count; part++) {
		free((char *)part->result.id.bytes);
		json_decref(part->result.json);
		buffer_free(&part->response);
	}
	free(batch->parts);
	buffer_free(&batch->line);
	free(batch);
}

void
batch_release(struct batch *batch)
{
	if (--batch->holders != 0)
		return;
	if (batch->part_count != 0)
		batch_add_parts(batch);
	if (batch->line.len != 0) {
		buffer_add_char(&batch->line, ']');
		stream_send(batch->stream, batch->line.bytes, batch->line.len);
	}
	batch_free(batch);
}
