/* Libraries that are loaded on demand (dynlib.h). */
#include "net/dynlib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first of the names that can be loaded; its handle stays for the life of the process. */
static void *open_library(const char *const *names)
{
    void *handle = NULL;

    for (; *names && !handle; names++)
        handle = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    return handle;
}

/* *to, a pointer to a function, = the symbol; ISO C converts no void * into one. */
static bool resolve_symbol(void *handle, const char *name, void *to)
{
    void *symbol = dlsym(handle, name);

    memcpy(to, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* -- libcurl -------------------------------------------------------------------------- */

static const char *const curl_names[] = { "libcurl.so.4", "libcurl-gnutls.so.4", NULL };
static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static ebb_curl curl;
static bool has_curl;

static void load_curl(void)
{
    void *handle = open_library(curl_names);
    bool ok = handle != NULL;

#define X(name) ok = ok && resolve_symbol(handle, #name, &curl.name);
    EBB_CURL_MAP(X)
#undef X
    has_curl = ok && curl.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

ebb_status ebb_curl_load(const ebb_curl **out, ebb_error *err)
{
    pthread_once(&curl_once, load_curl);
    *out = has_curl ? &curl : NULL;
    return has_curl ? EBB_OK
                    : EBB_FAIL(err, EBB_UNSUPPORTED,
                               "libcurl.so.4 is missing; connections need it: apt-get install libcurl4");
}

ebb_status ebb_curl_expect_set(const ebb_curl *api, CURLcode code, ebb_error *err)
{
    if (code == CURLE_OK)
        return EBB_OK;
    if (code == CURLE_OUT_OF_MEMORY)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a request");
    return EBB_FAIL(err, EBB_UNSUPPORTED, "this libcurl cannot do what the request needs: %s; install a newer libcurl4",
                    api->curl_easy_strerror(code));
}

/* -- libmicrohttpd --------------------------------------------------------------------- */

static const char *const mhd_names[] = { "libmicrohttpd.so.12", NULL };
static pthread_once_t mhd_once = PTHREAD_ONCE_INIT;
static ebb_mhd mhd;
static bool has_mhd;

static void load_mhd(void)
{
    void *handle = open_library(mhd_names);

    has_mhd = handle != NULL;
#define X(name) has_mhd = has_mhd && resolve_symbol(handle, #name, &mhd.name);
    EBB_MHD_MAP(X)
#undef X
}

ebb_status ebb_mhd_load(const ebb_mhd **out, ebb_error *err)
{
    pthread_once(&mhd_once, load_mhd);
    *out = has_mhd ? &mhd : NULL;
    return has_mhd ? EBB_OK
                   : EBB_FAIL(err, EBB_UNSUPPORTED,
                              "libmicrohttpd.so.12 is missing; a server needs it: apt-get install libmicrohttpd12");
}

/* -- libcrypto ------------------------------------------------------------------------ */

/* As <openssl/evp.h> declares them since 1.1; its headers are a package of their own. */
typedef struct evp_md_ctx evp_md_ctx;
typedef struct evp_md evp_md;
static struct {
    evp_md_ctx   *(*EVP_MD_CTX_new)(void);
    void          (*EVP_MD_CTX_free)(evp_md_ctx *);
    const evp_md *(*EVP_sha256)(void);
    int           (*EVP_DigestInit_ex)(evp_md_ctx *, const evp_md *, void *engine);
    int           (*EVP_DigestUpdate)(evp_md_ctx *, const void *, size_t);
    int           (*EVP_DigestFinal_ex)(evp_md_ctx *, unsigned char *, unsigned *);
} evp;

static const char *const crypto_names[] = { "libcrypto.so.3", "libcrypto.so.1.1", NULL };
static pthread_once_t crypto_once = PTHREAD_ONCE_INIT;
static bool has_crypto;

struct ebb_sha256 {
    evp_md_ctx *context;
};

static void load_crypto(void)
{
    void *h = open_library(crypto_names);

    has_crypto = h && resolve_symbol(h, "EVP_MD_CTX_new", &evp.EVP_MD_CTX_new) &&
                 resolve_symbol(h, "EVP_MD_CTX_free", &evp.EVP_MD_CTX_free) &&
                 resolve_symbol(h, "EVP_sha256", &evp.EVP_sha256) &&
                 resolve_symbol(h, "EVP_DigestInit_ex", &evp.EVP_DigestInit_ex) &&
                 resolve_symbol(h, "EVP_DigestUpdate", &evp.EVP_DigestUpdate) &&
                 resolve_symbol(h, "EVP_DigestFinal_ex", &evp.EVP_DigestFinal_ex);
}

ebb_status ebb_sha256_new(ebb_sha256 **out, ebb_error *err)
{
    *out = NULL;
    pthread_once(&crypto_once, load_crypto);
    if (!has_crypto)
        return EBB_FAIL(err, EBB_UNSUPPORTED,
                        "libcrypto.so.3 is missing; it checks downloads: apt-get install libssl3");
    *out = calloc(1, sizeof **out);
    if (*out)
        (*out)->context = evp.EVP_MD_CTX_new();
    if (!*out || !(*out)->context) {
        free(*out);
        *out = NULL;
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a checksum");
    }
    ebb_sha256_begin(*out);
    return EBB_OK;
}

void ebb_sha256_free(ebb_sha256 *s)
{
    if (s)
        evp.EVP_MD_CTX_free(s->context);
    free(s);
}

void ebb_sha256_begin(ebb_sha256 *s)
{
    evp.EVP_DigestInit_ex(s->context, evp.EVP_sha256(), NULL);
}

void ebb_sha256_add(ebb_sha256 *s, const void *data, size_t n)
{
    evp.EVP_DigestUpdate(s->context, data, n);
}

void ebb_sha256_end(ebb_sha256 *s, char out[65])
{
    unsigned char digest[64] = { 0 };

    evp.EVP_DigestFinal_ex(s->context, digest, NULL);
    for (int i = 0; i < 32; i++)
        snprintf(out + 2 * (size_t)i, 3, "%02x", digest[i]);
}
