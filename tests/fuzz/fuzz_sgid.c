/* Signed global ids, as text and as what they hold once decoded. */
#include <string.h>

#include "common/base64.h"
#include "common/marshal.h"
#include "common/sgid.h"
#include "common/xmalloc.h"
#include "tests/fuzz/fuzz.h"

static void
check_sgid(const char *text, size_t len)
{
	int64_t person = -1;

	if (sgid_person(text, len, &person))
		MUST(person > 0);
	else
		MUST(person == -1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xmalloc(BASE64_LEN(size) + 1);
	uint8_t *back = xmalloc(size);

	check_sgid((const char *)data, size);
	base64url_encode(data, size, text);
	MUST(base64url_decode(text, strlen(text), back, size) == (ssize_t)size);
	MUST(memcmp(data, back, size) == 0);
	check_sgid(text, strlen(text));
	if (size <= SGID_DECODED_MAX)
		json_decref(marshal_read(data, size, SGID_DEPTH_MAX));
	free(back);
	free(text);
	return 0;
}
