#include "files_omit.h"

#include "limits.h"

#include <string.h>

enum channel_result omit(struct omissions *omissions, enum file_omission what, const char *path)
{
	struct file_omitted_body body = {.what = (uint16_t)what};
	size_t length = strnlen(path, PATH_BYTES);
	while (length > 1 && path[length - 1] == '/')
		length--; /* a directory, as archives write it */
	omissions->count++;
	omissions->named_bytes += length;
	return omissions->named_bytes > OMITTED_PATH_BYTES ? CHANNEL_OK : channel_answer(FILE_OMITTED, &body, sizeof body, path, length);
}
