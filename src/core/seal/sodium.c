/* libsodium on demand (seal/sodium.h). */
#include "seal/sodium.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static const char *const sodium_names[] = { "libsodium.so.23", "libsodium.so.26", NULL };
static pthread_once_t sodium_once = PTHREAD_ONCE_INIT;
static ebb_sodium sodium;
static bool has_sodium;

static void load_sodium(void)
{
    void *handle = NULL, *symbol;

    for (size_t i = 0; sodium_names[i] && !handle; i++)
        handle = dlopen(sodium_names[i], RTLD_NOW | RTLD_LOCAL);
    has_sodium = handle != NULL;
/* ISO C converts no void * into a pointer to a function. */
#define X(name)                                                \
    symbol = has_sodium ? dlsym(handle, #name) : NULL;         \
    memcpy(&sodium.name, &symbol, sizeof symbol);              \
    has_sodium = symbol != NULL;
    EBB_SODIUM_MAP(X)
#undef X
    has_sodium = has_sodium && sodium.sodium_init() >= 0;
}

ebb_status ebb_sodium_load(const ebb_sodium **out, ebb_error *err)
{
    pthread_once(&sodium_once, load_sodium);
    *out = has_sodium ? &sodium : NULL;
    return has_sodium ? EBB_OK
                      : EBB_FAIL(err, EBB_UNSUPPORTED,
                                 "libsodium.so.23 is missing; encryption needs it: apt-get install libsodium23");
}
