#include "files_xattr.h"

#include "limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

static int has_none(void)
{
	return errno == EOPNOTSUPP || errno == ENODATA || errno == EPERM || errno == EACCES;
}

static int each_name(int fd, const char *names, size_t length, char *value, xattr_taker *take, void *context)
{
	for (const char *name = names; name < names + length; name += strlen(name) + 1) {
		ssize_t size = fgetxattr(fd, name, value, XATTR_BYTES);
		if (size < 0)
			continue; /* removed since, or not for this user to see */
		struct xattr attribute = {.name = name, .value = value, .length = (size_t)size};
		int result = take(&attribute, context);
		if (result != 0)
			return result;
	}
	return 0;
}

int xattr_each(int fd, xattr_taker *take, void *context)
{
	ssize_t length = flistxattr(fd, NULL, 0);
	if (length <= 0)
		return length == 0 || has_none() ? 0 : -1;
	char *names = malloc(2 * XATTR_BYTES);
	if (!names)
		return -1;
	length = flistxattr(fd, names, XATTR_BYTES);
	int result = length <= 0 ? 0 : each_name(fd, names, (size_t)length, names + XATTR_BYTES, take, context);
	free(names);
	return result;
}

static int copy_one(const struct xattr *attribute, void *context)
{
	if (strcmp(attribute->name, "security.capability") == 0)
		return 0;
	int to = *(const int *)context;
	if (fsetxattr(to, attribute->name, attribute->value, attribute->length, 0) == 0 || has_none())
		return 0; /* what only others may set (trusted.*, say) a program that writes the file anew would lose too */
	return -1;
}

int xattr_copy(int from, int to)
{
	return xattr_each(from, copy_one, &to);
}
