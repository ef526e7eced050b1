#include "check.h"
#include "sha256.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *hash_of(const void *bytes, size_t length, size_t step)
{
	static char hex[65];
	struct sha256 hash;
	sha256_begin(&hash);
	for (size_t at = 0; at < length; at += step)
		sha256_add(&hash, (const char *)bytes + at, length - at < step ? length - at : step);
	sha256_end(&hash, hex);
	return hex;
}

/* The examples of FIPS 180-4, and a million times the letter a. */
static void known_answers(void)
{
	CHECK(strcmp(hash_of("", 0, 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855") == 0);
	CHECK(strcmp(hash_of("abc", 3, 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad") == 0);
	CHECK(strcmp(hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, 56),
		     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1") == 0);
	char *letters = malloc(1000000);
	CHECK(letters);
	memset(letters, 'a', 1000000);
	CHECK(strcmp(hash_of(letters, 1000000, 777), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0") == 0);
	free(letters);
}

static uint8_t text[5000];
static char by_instructions[300][65];

static void any_length_in_any_pieces(void)
{
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (uint8_t)(i * i >> 3);
	for (size_t length = 0; length < 300; length++) {
		memcpy(by_instructions[length], hash_of(text, length, length + 1), 65);
		for (size_t step = 1; step < 130; step += 7)
			CHECK(strcmp(hash_of(text, length, step), by_instructions[length]) == 0);
	}
}

static void the_same_without_instructions(void)
{
	char whole[65];
	memcpy(whole, hash_of(text, sizeof text, sizeof text), 65);
	sha256_do_without_instructions();
	known_answers();
	for (size_t length = 0; length < 300; length++)
		CHECK(strcmp(hash_of(text, length, length + 1), by_instructions[length]) == 0);
	CHECK(strcmp(hash_of(text, sizeof text, 63), whole) == 0);
}

int main(void)
{
	RUN(known_answers);
	RUN(any_length_in_any_pieces);
	RUN(the_same_without_instructions);
	return 0;
}
