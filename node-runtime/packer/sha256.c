#include "sha256.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

/* Fractional parts of the cube roots of the first 64 primes. */
static const uint32_t K[64] __attribute__((aligned(16))) = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
	0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
	0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
	0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
	0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turned(uint32_t word, int by)
{
	return word >> by | word << (32 - by);
}

static void blocks_in_general(uint32_t state[8], const uint8_t *at, size_t count)
{
	for (; count > 0; count--, at += 64) {
		uint32_t w[64], s[8];
		for (int i = 0; i < 16; i++)
			w[i] = (uint32_t)at[4 * i] << 24 | (uint32_t)at[4 * i + 1] << 16 | (uint32_t)at[4 * i + 2] << 8 | at[4 * i + 3];
		for (int i = 16; i < 64; i++)
			w[i] = w[i - 16] + w[i - 7] + (turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3) +
			       (turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10);
		memcpy(s, state, sizeof s);
		for (int i = 0; i < 64; i++) {
			uint32_t chosen = (s[4] & s[5]) ^ (~s[4] & s[6]), most = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
			uint32_t first = s[7] + (turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25)) + chosen + K[i] + w[i];
			uint32_t second = (turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22)) + most;
			memmove(s + 1, s, 7 * sizeof *s);
			s[4] += first;
			s[0] = first + second;
		}
		for (int i = 0; i < 8; i++)
			state[i] += s[i];
	}
}

#if defined(__x86_64__)
static bool has_instructions(void)
{
	unsigned a, b = 0, c, d;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & 1u << 29) && __builtin_cpu_supports("sse4.1");
}

/* The instructions want the state as (a b e f) and (c d g h), highest word first; four rounds take four words of the schedule. */
__attribute__((target("sha,sse4.1"))) static void blocks_by_instructions(uint32_t state[8], const uint8_t *at, size_t count)
{
	const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
	__m128i abef = _mm_set_epi32((int)state[0], (int)state[1], (int)state[4], (int)state[5]);
	__m128i cdgh = _mm_set_epi32((int)state[2], (int)state[3], (int)state[6], (int)state[7]);
	for (; count > 0; count--, at += 64) {
		__m128i w[4], abef_before = abef, cdgh_before = cdgh;
		for (int i = 0; i < 4; i++)
			w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(at + 16 * i)), order);
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) {
			__m128i *now = &w[i % 4];
			if (i >= 4) {
				__m128i seventh = _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4);
				*now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(i + 1) % 4]), seventh), w[(i + 3) % 4]);
			}
			__m128i words = _mm_add_epi32(*now, _mm_load_si128((const __m128i *)&K[4 * i]));
			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, words);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(words, 0x0e));
		}
		abef = _mm_add_epi32(abef, abef_before);
		cdgh = _mm_add_epi32(cdgh, cdgh_before);
	}
	state[0] = (uint32_t)_mm_extract_epi32(abef, 3), state[1] = (uint32_t)_mm_extract_epi32(abef, 2);
	state[4] = (uint32_t)_mm_extract_epi32(abef, 1), state[5] = (uint32_t)_mm_extract_epi32(abef, 0);
	state[2] = (uint32_t)_mm_extract_epi32(cdgh, 3), state[3] = (uint32_t)_mm_extract_epi32(cdgh, 2);
	state[6] = (uint32_t)_mm_extract_epi32(cdgh, 1), state[7] = (uint32_t)_mm_extract_epi32(cdgh, 0);
}
#else
static bool has_instructions(void)
{
	return false;
}

static void blocks_by_instructions(uint32_t state[8], const uint8_t *at, size_t count)
{
	blocks_in_general(state, at, count);
}
#endif

static void (*blocks)(uint32_t state[8], const uint8_t *at, size_t count);

void sha256_do_without_instructions(void)
{
	blocks = blocks_in_general;
}

void sha256_begin(struct sha256 *hash)
{
	/* fractional parts of the square roots of the first eight primes */
	static const uint32_t FIRST[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	if (!blocks)
		blocks = has_instructions() ? blocks_by_instructions : blocks_in_general;
	memcpy(hash->state, FIRST, sizeof FIRST);
	hash->bytes = 0;
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t length)
{
	const uint8_t *at = bytes;
	size_t held = hash->bytes % 64;
	hash->bytes += length;
	if (held > 0) {
		size_t part = length < 64 - held ? length : 64 - held;
		memcpy(hash->rest + held, at, part);
		if (held + part < 64)
			return;
		blocks(hash->state, hash->rest, 1);
		at += part;
		length -= part;
	}
	blocks(hash->state, at, length / 64);
	memcpy(hash->rest, at + length / 64 * 64, length % 64);
}

void sha256_end(struct sha256 *hash, char hex[65])
{
	uint64_t bits = hash->bytes * 8;
	uint8_t tail[72] = {0x80};
	size_t zeros = (55 - hash->bytes % 64 + 64) % 64;
	for (int i = 0; i < 8; i++)
		tail[1 + zeros + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_add(hash, tail, 1 + zeros + 8);
	for (int i = 0; i < 8; i++)
		snprintf(hex + 8 * i, 9, "%08x", hash->state[i]);
}
