/* The requests of a files connection. Each answers by frames; the result says only whether the connection goes on. */
#ifndef AETHER_FILES_REQUEST_H
#define AETHER_FILES_REQUEST_H

#include "files_channel.h"

#include <sys/types.h>

enum channel_result files_stat(const struct channel_frame *frame);
enum channel_result files_mkdir(const struct channel_frame *frame);
enum channel_result files_move(const struct channel_frame *frame);
enum channel_result files_remove(const struct channel_frame *frame);
enum channel_result files_list(const struct channel_frame *frame);
enum channel_result files_read(const struct channel_frame *frame);
enum channel_result files_write(const struct channel_frame *frame);
enum channel_result files_append(const struct channel_frame *frame);
enum channel_result files_pack(const struct channel_frame *frame);
enum channel_result files_unpack(const struct channel_frame *frame);
enum channel_result files_watch(const struct channel_frame *frame);

/* The value of a key that a request must have; NULL when it has not. */
const char *request_text(const struct channel_frame *frame, const char *key);
/* A number within bounds; `absent` when the request does not name it. 0, or -1. */
int request_number(const struct channel_frame *frame, const char *key, uint64_t absent, uint64_t most, uint64_t *out);
int request_flag(const struct channel_frame *frame, const char *key);
/* Mode bits, or `absent`. */
int request_mode(const struct channel_frame *frame, mode_t absent, mode_t *out);

#endif
