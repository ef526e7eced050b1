#include "attributes.h"

#include "erofs.h"
#include "limits.h"
#include "report.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

enum prefix { PREFIX_USER = 1, PREFIX_ACL_ACCESS = 2, PREFIX_ACL_DEFAULT = 3, PREFIX_TRUSTED = 4, PREFIX_SECURITY = 6 };

/* Entries of an ACL as the kernel gives them, behind a version of four bytes. */
struct acl_entry {
	uint16_t tag, rights;
	uint32_t id;
};
enum { ACL_VERSION_BYTES = 4, ACL_USER = 0x02, ACL_GROUP = 0x08 };

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static uint32_t own_id(uint32_t id, uint32_t first_id, const char *shown, const char *reason)
{
	if (id - first_id >= ID_RANGE_SIZE)
		refuse(shown, reason);
	return id - first_id;
}

static void map_acl(uint8_t *value, size_t length, const char *shown, uint32_t first_id)
{
	for (size_t at = ACL_VERSION_BYTES; at + sizeof(struct acl_entry) <= length; at += sizeof(struct acl_entry)) {
		struct acl_entry entry;
		memcpy(&entry, value + at, sizeof entry);
		if (entry.tag == ACL_USER || entry.tag == ACL_GROUP)
			entry.id = own_id(entry.id, first_id, shown, "its access list names an id that is not the sandbox's");
		memcpy(value + at, &entry, sizeof entry);
	}
}

/* Capabilities set inside name the sandbox's root by its id on the host; in an image the root is root. Returns the new length. */
static size_t map_capability(uint8_t *value, size_t length, const char *shown, uint32_t first_id)
{
	struct vfs_ns_cap_data data;
	if (length != sizeof data) /* without a root: of a layer that was copied up, or older */
		return length;
	memcpy(&data, value, sizeof data);
	if (own_id(data.rootid, first_id, shown, "its capabilities belong to an id that is not the sandbox's") != 0)
		refuse(shown, "its capabilities belong to a user that is not root");
	data.magic_etc = (data.magic_etc & ~(uint32_t)VFS_CAP_REVISION_MASK) | VFS_CAP_REVISION_2;
	memcpy(value, &data, sizeof(struct vfs_cap_data));
	return sizeof(struct vfs_cap_data);
}

/* 1: keep, 0: drop. `name` is what follows trusted.overlay. */
static int overlay_mark(const char *name, const char *shown)
{
	if (strcmp(name, "opaque") == 0 || strcmp(name, "redirect") == 0)
		return 1;
	if (strcmp(name, "origin") == 0 || strcmp(name, "impure") == 0 || strcmp(name, "uuid") == 0 || strcmp(name, "nlink") == 0)
		return 0;
	refuse(shown, strcmp(name, "metacopy") == 0 ? "its data lies in a lower layer (trusted.overlay.metacopy)"
						    : "it carries a mark of the overlay that this version does not know");
}

/* The prefix and what follows it; 0 when the attribute is dropped. */
static enum prefix prefix_of(const char *name, const char **rest, const char *shown)
{
	static const struct {
		const char *text;
		enum prefix prefix;
	} PREFIXES[] = {{"user.", PREFIX_USER}, {"trusted.", PREFIX_TRUSTED}, {"security.", PREFIX_SECURITY}};
	*rest = "";
	if (strcmp(name, "system.posix_acl_access") == 0)
		return PREFIX_ACL_ACCESS;
	if (strcmp(name, "system.posix_acl_default") == 0)
		return PREFIX_ACL_DEFAULT;
	if (starts_with(name, "trusted.overlay.") && !overlay_mark(name + strlen("trusted.overlay."), shown))
		return 0;
	for (size_t i = 0; i < sizeof PREFIXES / sizeof *PREFIXES; i++)
		if (starts_with(name, PREFIXES[i].text)) {
			*rest = name + strlen(PREFIXES[i].text);
			return PREFIXES[i].prefix;
		}
	refuse(shown, "it has an attribute that an image cannot hold");
}

static void append(struct attributes *to, const char *shown, enum prefix prefix, const char *name, const uint8_t *value, size_t length)
{
	size_t name_length = strlen(name), padded = (sizeof(struct erofs_xattr_entry) + name_length + length + 3) & ~(size_t)3;
	size_t used = to->bytes ? to->length : sizeof(struct erofs_xattr_header);
	if (used + padded > XATTRS_BYTES || length > UINT16_MAX)
		refuse(shown, "its extended attributes are larger than an image can hold");
	to->bytes = must(realloc(to->bytes, used + padded));
	if (to->length == 0)
		memset(to->bytes, 0, sizeof(struct erofs_xattr_header));
	struct erofs_xattr_entry entry = {(uint8_t)name_length, (uint8_t)prefix, (uint16_t)length};
	uint8_t *at = to->bytes + used;
	memset(at, 0, padded);
	memcpy(at, &entry, sizeof entry);
	memcpy(at + sizeof entry, name, name_length);
	memcpy(at + sizeof entry + name_length, value, length);
	to->length = (uint32_t)(used + padded);
}

static void read_one(struct attributes *to, const char *real, const char *shown, uint32_t first_id, const char *name)
{
	static uint8_t value[XATTR_BYTES];
	const char *rest;
	enum prefix prefix = prefix_of(name, &rest, shown);
	if (!prefix)
		return;
	ssize_t length = lgetxattr(real, name, value, sizeof value);
	if (length < 0)
		fail("read an extended attribute");
	if (prefix == PREFIX_ACL_ACCESS || prefix == PREFIX_ACL_DEFAULT)
		map_acl(value, (size_t)length, shown, first_id);
	else if (strcmp(name, "security.capability") == 0)
		length = (ssize_t)map_capability(value, (size_t)length, shown, first_id);
	append(to, shown, prefix, rest, value, (size_t)length);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct attributes attributes_read(const char *real, const char *shown, uint32_t first_id)
{
	static char names[XATTR_BYTES];
	static const char *sorted[XATTR_BYTES / 2];
	struct attributes attributes = {0};
	ssize_t length = llistxattr(real, names, sizeof names);
	if (length < 0 && errno != ENOTSUP)
		fail("list extended attributes");
	size_t count = 0;
	for (const char *name = names; length > 0 && name < names + length; name += strlen(name) + 1)
		sorted[count++] = name;
	qsort(sorted, count, sizeof *sorted, by_name); /* the order of the file system is nobody's business */
	for (size_t i = 0; i < count; i++)
		read_one(&attributes, real, shown, first_id, sorted[i]);
	return attributes;
}
