/* tests/fuzz/fake_curl.h - libcurl without a network: what servers answer is a script.
 *
 * Replies are set apart by \x1e, one for each transfer.  A reply is lines up to an empty one,
 * then the body, whose pieces are set apart by \x1f.  The first line, "HTTP/1.1 206 18", has the
 * status and may have the CURLcode with which the transfer ends.  A piece that is \x1d stands for
 * the attachment.  Behind the script nobody answers.  URLs and lists are libcurl's own; the linker
 * puts this in its place (--wrap=ebb_curl_load). */
#ifndef EBB_FUZZ_FAKE_CURL_H
#define EBB_FUZZ_FAKE_CURL_H
#include <stdbool.h>
#include <stddef.h>

#include <curl/curl.h>

/* `watch` sees each request before it is answered; NULL is fine.  The script is borrowed. */
void fake_curl_begin(const char *script, size_t n,
                     void (*watch)(const char *url, const struct curl_slist *headers));
/* What \x1d is from now on; borrowed. */
void fake_curl_attach(const char *data, size_t n);
bool fake_curl_is_over(void);

#endif
