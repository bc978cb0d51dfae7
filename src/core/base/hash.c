/* SipHash-2-4-128 (hash.h). */
#include "base/hash.h"

#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

typedef struct sip {
    uint64_t v0, v1, v2, v3;
} sip;

static inline uint64_t rotl(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static inline void sip_rounds(sip *s, int n)
{
    while (n-- > 0) {
        s->v0 += s->v1; s->v1 = rotl(s->v1, 13) ^ s->v0; s->v0 = rotl(s->v0, 32);
        s->v2 += s->v3; s->v3 = rotl(s->v3, 16) ^ s->v2;
        s->v0 += s->v3; s->v3 = rotl(s->v3, 21) ^ s->v0;
        s->v2 += s->v1; s->v1 = rotl(s->v1, 17) ^ s->v2; s->v2 = rotl(s->v2, 32);
    }
}

static inline void sip_word(sip *s, uint64_t word)
{
    s->v3 ^= word;
    sip_rounds(s, 2);
    s->v0 ^= word;
}

/* n <= 8 bytes, lowest first, whatever the machine's own order */
static inline uint64_t load_word(const uint8_t *p, size_t n)
{
    uint64_t word = 0;

    for (size_t i = 0; i < n; i++)
        word |= (uint64_t)p[i] << (8 * i);
    return word;
}

static uint64_t sip_half(const sip *s)
{
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

static void store_word(uint8_t *out, uint64_t word)
{
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)(word >> (8 * i));
}

void ebb_hash128(const void *data, size_t n, const uint8_t key[16], uint8_t out[16])
{
    static const uint8_t zero[16];
    const uint8_t *p = data, *k = key ? key : zero;
    uint64_t k0 = load_word(k, 8), k1 = load_word(k + 8, 8);
    sip s = { k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du ^ 0xee,
              k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u };
    size_t left = n;

    for (; left >= 8; p += 8, left -= 8)
        sip_word(&s, load_word(p, 8));
    sip_word(&s, load_word(p, left) | (uint64_t)n << 56);
    s.v2 ^= 0xee;
    sip_rounds(&s, 4);
    store_word(out, sip_half(&s));
    s.v1 ^= 0xdd;
    sip_rounds(&s, 4);
    store_word(out + 8, sip_half(&s));
}

/* -- Tables in memory -------------------------------------------------------------------- */

static uint64_t table_key[2];
static pthread_once_t table_key_once = PTHREAD_ONCE_INIT;

static void draw_table_key(void)
{
    struct timespec now = { 0 };

    if (getrandom(table_key, sizeof table_key, GRND_NONBLOCK) == sizeof table_key)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);        /* just after the machine's start: better than nothing */
    table_key[0] = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)(uintptr_t)&now;
    table_key[1] = (uint64_t)now.tv_sec << 20 ^ (uint64_t)(uintptr_t)table_key;
}

uint64_t ebb_hash_table(const void *data, size_t n)
{
    const uint8_t *p = data;
    size_t left = n;
    uint64_t word;
    sip s;

    pthread_once(&table_key_once, draw_table_key);
    s = (sip){ table_key[0] ^ 0x736f6d6570736575u, table_key[1] ^ 0x646f72616e646f6du,
               table_key[0] ^ 0x6c7967656e657261u, table_key[1] ^ 0x7465646279746573u };
    for (; left >= 8; p += 8, left -= 8) {
        memcpy(&word, p, 8);
        s.v3 ^= word;
        sip_rounds(&s, 1);
        s.v0 ^= word;
    }
    word = load_word(p, left) | (uint64_t)n << 56;
    s.v3 ^= word;
    sip_rounds(&s, 1);
    s.v0 ^= word;
    s.v2 ^= 0xff;
    sip_rounds(&s, 3);
    return sip_half(&s);
}
