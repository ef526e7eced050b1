/* One file as a record: for STAT and WRITE as an answer's body, for LIST one after another. */
#ifndef AETHER_FILES_ENTRY_H
#define AETHER_FILES_ENTRY_H

#include "files_channel.h"

#include <sys/stat.h>

/* Type of the wire for a mode, 0 for none. */
uint8_t entry_type(mode_t mode);
struct file_entry_body entry_of(const struct stat *status, size_t name_length, size_t target_length);
/* ENTRY with an empty name. */
enum channel_result entry_answer(const struct stat *status, const char *target);

#endif
