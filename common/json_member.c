#include <errno.h>
#include <string.h>

#include "common/json.h"

/* The largest whole number that every JSON writer's double still tells. */
#define EXACT_MAX ((INT64_C(1) << 53) - 1)

static int
wrong(struct error *e, int code, const char *name, const char *why)
{
	(void)error_set(e, "member \"%s\" %s", name, why);
	if (e != NULL)
		e->code = code;
	return -1;
}

/* 1 and the value if it is there, 0 if it need not be, else -1. */
static int
member_find(const json_t *object, const char *name, enum json_need need,
    json_t **value, struct error *e)
{
	*value = json_object_get(object, name);
	if (*value != NULL && !json_is_null(*value))
		return 1;
	if (need == JSON_MAY_BE_NULL)
		return 0;
	if (need == JSON_REQUIRED)
		return wrong(
		    e, ENOENT, name, *value == NULL ? "is missing" : "is null");
	return *value == NULL ? 0 : wrong(e, EINVAL, name, "is null");
}

static int
member_integer(const json_t *object, const char *name, enum json_need need,
    bool is_id, int64_t *out, struct error *e)
{
	json_t *value;
	int found = member_find(object, name, need, &value, e);

	if (found != 1)
		return found;
	if (!json_is_integer(value))
		return wrong(e, EINVAL, name, "is not an integer");
	if (is_id && json_integer_value(value) < 1)
		return wrong(e, ERANGE, name, "is not above 0");
	*out = json_integer_value(value);
	return 0;
}

int
json_member_int(const json_t *object, const char *name, enum json_need need,
    int64_t *out, struct error *e)
{
	return member_integer(object, name, need, false, out, e);
}

int
json_member_id(const json_t *object, const char *name, enum json_need need,
    int64_t *out, struct error *e)
{
	return member_integer(object, name, need, true, out, e);
}

int
json_member_bool(const json_t *object, const char *name, enum json_need need,
    bool *out, struct error *e)
{
	json_t *value;
	int found = member_find(object, name, need, &value, e);

	if (found != 1)
		return found;
	if (!json_is_boolean(value))
		return wrong(e, EINVAL, name, "is neither true nor false");
	*out = json_is_true(value);
	return 0;
}

int
json_member_string(const json_t *object, const char *name, enum json_need need,
    struct json_text *out, struct error *e)
{
	json_t *value;
	int found = member_find(object, name, need, &value, e);

	if (found != 1)
		return found;
	if (!json_is_string(value))
		return wrong(e, EINVAL, name, "is not a string");
	out->bytes = json_string_value(value);
	out->len = json_string_length(value);
	out->has_nul = memchr(out->bytes, '\0', out->len) != NULL;
	return 0;
}

int
json_member_object(const json_t *object, const char *name, enum json_need need,
    json_t **out, struct error *e)
{
	json_t *value;
	int found = member_find(object, name, need, &value, e);

	if (found != 1)
		return found;
	if (!json_is_object(value))
		return wrong(e, EINVAL, name, "is not an object");
	*out = value;
	return 0;
}

int
json_member_array(const json_t *object, const char *name, enum json_need need,
    json_t **out, struct error *e)
{
	json_t *value;
	int found = member_find(object, name, need, &value, e);

	if (found != 1)
		return found;
	if (!json_is_array(value))
		return wrong(e, EINVAL, name, "is not an array");
	*out = value;
	return 0;
}

/* Decimal digits and nothing else, within int64. */
static bool
digits_to_int(const char *text, size_t len, int64_t *out)
{
	int64_t n = 0;
	size_t i;

	for (i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, text[i] - '0', &n))
			return false;
	}
	*out = n;
	return len != 0;
}

/* Why VALUE is no id, or NULL and the id in *OUT. */
static const char *
id_read(const json_t *value, int64_t *out)
{
	double real;

	if (json_is_string(value)) {
		if (digits_to_int(json_string_value(value),
			json_string_length(value), out))
			return NULL;
		return "is not a decimal id";
	}
	if (json_is_integer(value)) {
		*out = json_integer_value(value);
		if (*out >= -EXACT_MAX && *out <= EXACT_MAX)
			return NULL;
		return "is too large for a number: write it as a string";
	}
	if (!json_is_real(value))
		return "is neither a number nor a string";
	real = json_real_value(value);
	if (!(real >= -(double)EXACT_MAX && real <= (double)EXACT_MAX))
		return "is too large for a number: write it as a string";
	if ((double)(int64_t)real != real)
		return "is not a whole number";
	*out = (int64_t)real;
	return NULL;
}

int
json_id_argument(
    const json_t *value, const char *name, int64_t *out, struct error *e)
{
	int64_t id = 0;
	const char *why = id_read(value, &id);

	if (why == NULL && id < 1)
		why = "is not above 0";
	if (why != NULL) {
		(void)error_set(e, "%s %s", name, why);
		if (e != NULL)
			e->code = EINVAL;
		return -1;
	}
	*out = id;
	return 0;
}
