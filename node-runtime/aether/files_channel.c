#include "files_channel.h"

#include "frame.h"
#include "limits.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int connection = -1;
static uint64_t request_id;
static uint8_t incoming[FILE_FRAME_MAX_BYTES + 1];
static uint8_t outgoing[FILE_CHUNK_BYTES];
static size_t outgoing_length;
static uint64_t outgoing_total;

void channel_open(int fd)
{
	connection = fd;
}

static enum channel_result receive_exactly(void *bytes, size_t length)
{
	for (size_t got = 0; got < length;) {
		ssize_t n = recv(connection, (uint8_t *)bytes + got, length - got, MSG_WAITALL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return CHANNEL_GONE;
		got += (size_t)n;
	}
	return CHANNEL_OK;
}

enum channel_result channel_receive(struct channel_frame *frame)
{
	struct frame_header header;
	_Static_assert(sizeof header == FRAME_HEADER_BYTES, "a header is received as it lies in memory");
	if (receive_exactly(&header, sizeof header) != CHANNEL_OK)
		return CHANNEL_GONE;
	if (header.length > FILE_FRAME_MAX_BYTES || header.flags != 0)
		return CHANNEL_MALFORMED;
	if (receive_exactly(incoming, header.length) != CHANNEL_OK)
		return CHANNEL_GONE;
	incoming[header.length] = '\0';
	request_id = header.id;
	*frame = (struct channel_frame){.type = header.type, .id = header.id, .body = incoming, .length = header.length};
	return CHANNEL_OK;
}

static enum channel_result send_all(struct iovec *parts, size_t count)
{
	while (count > 0) {
		struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
		ssize_t sent = sendmsg(connection, &message, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return CHANNEL_GONE;
		while (count > 0 && (size_t)sent >= parts->iov_len) {
			sent -= (ssize_t)parts->iov_len;
			parts++;
			count--;
		}
		if (count > 0) {
			parts->iov_base = (uint8_t *)parts->iov_base + sent;
			parts->iov_len -= (size_t)sent;
		}
	}
	return CHANNEL_OK;
}

enum channel_result channel_answer(uint16_t type, const void *head, size_t head_length, const void *tail, size_t tail_length)
{
	struct frame_header header = {.length = (uint32_t)(head_length + tail_length), .type = type, .id = request_id};
	struct iovec parts[] = {
		{&header, sizeof header},
		{(void *)(uintptr_t)head, head_length},
		{(void *)(uintptr_t)tail, tail_length},
	};
	return send_all(parts, sizeof parts / sizeof *parts);
}

int channel_hung_up(void)
{
	struct pollfd watched = {.fd = connection};
	return poll(&watched, 1, 0) > 0 && (watched.revents & (POLLHUP | POLLERR)) != 0;
}

int channel_wait(int fd)
{
	struct pollfd watched[] = {{.fd = connection, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
	while (poll(watched, 2, -1) < 0)
		if (errno != EINTR)
			return -1;
	return watched[0].revents != 0 ? -1 : 0;
}

enum channel_result channel_fail_at(enum file_reason reason, int error_number, const char *path)
{
	struct file_failed_body body = {.reason = (uint16_t)reason, .error_number = error_number};
	size_t length = path ? strnlen(path, PATH_BYTES) : 0;
	return channel_answer(FILE_FAILED, &body, sizeof body, path, length);
}

enum channel_result channel_fail(int error_number)
{
	return channel_fail_at(REASON_ERRNO, error_number, NULL);
}

enum channel_result channel_partial(uint64_t bytes, uint64_t entries)
{
	struct file_partial_body body = {.bytes = bytes, .entries = entries};
	return channel_answer(FILE_PARTIAL, &body, sizeof body, NULL, 0);
}

enum channel_result channel_end(uint64_t bytes, uint64_t entries, uint64_t omitted)
{
	struct file_end_body body = {.bytes = bytes, .entries = entries, .omitted = omitted};
	return channel_answer(FILE_END, &body, sizeof body, NULL, 0);
}

void stream_begin(void)
{
	outgoing_length = 0;
	outgoing_total = 0;
}

uint64_t stream_total(void)
{
	return outgoing_total;
}

enum channel_result stream_flush(void)
{
	size_t length = outgoing_length;
	outgoing_length = 0;
	return length == 0 ? CHANNEL_OK : channel_answer(FILE_DATA, outgoing, length, NULL, 0);
}

uint8_t *stream_room(size_t least, size_t *room)
{
	if (sizeof outgoing - outgoing_length < least && stream_flush() != CHANNEL_OK)
		return NULL;
	*room = sizeof outgoing - outgoing_length;
	return outgoing + outgoing_length;
}

enum channel_result stream_fill(size_t length)
{
	outgoing_length += length;
	outgoing_total += length;
	return outgoing_length == sizeof outgoing ? stream_flush() : CHANNEL_OK;
}

enum channel_result stream_write(const void *bytes, size_t length)
{
	for (size_t done = 0; done < length;) {
		size_t room, part = length - done;
		uint8_t *to = stream_room(1, &room);
		if (!to)
			return CHANNEL_GONE;
		if (part > room)
			part = room;
		memcpy(to, (const uint8_t *)bytes + done, part);
		if (stream_fill(part) != CHANNEL_OK)
			return CHANNEL_GONE;
		done += part;
	}
	return CHANNEL_OK;
}

void upload_begin(struct upload *upload)
{
	*upload = (struct upload){0};
}

size_t upload_next(struct upload *upload, size_t most, const uint8_t **bytes)
{
	struct channel_frame frame;
	while (upload->left == 0) {
		if (upload->committed || upload->broken != CHANNEL_OK)
			return 0;
		upload->broken = channel_receive(&frame);
		if (upload->broken != CHANNEL_OK)
			return 0;
		if (frame.type == FILE_COMMIT)
			upload->committed = 1;
		else if (frame.type != FILE_CHUNK)
			upload->broken = CHANNEL_MALFORMED;
		else {
			upload->at = frame.body;
			upload->left = frame.length;
		}
	}
	size_t length = upload->left < most ? upload->left : most;
	*bytes = upload->at;
	upload->at += length;
	upload->left -= length;
	upload->total += length;
	return length;
}

enum channel_result upload_fail(struct upload *upload, enum file_reason reason, int error_number, const char *path)
{
	const uint8_t *bytes;
	if (channel_fail_at(reason, error_number, path) != CHANNEL_OK)
		return CHANNEL_GONE;
	while (upload_next(upload, SIZE_MAX, &bytes) > 0)
		continue;
	return upload->broken;
}
