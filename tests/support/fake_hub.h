/* support/fake_hub.h - hub.py, or another server of these, for a test written in C: on the
 * loopback. */
#ifndef EBB_TEST_HUB_H
#define EBB_TEST_HUB_H
#include <stdbool.h>
#include <sys/types.h>

typedef struct test_hub {
    char  dir[64];               /* of its own; files/ below it are its repositories */
    char  url[64];               /* http://127.0.0.1:PORT */
    pid_t pid;
} test_hub;

/* false: there is no python3. */
bool test_hub_start(test_hub *h);
/* The same of another script, tests/support/engine.py. */
bool test_hub_start_script(test_hub *h, const char *script);
void test_hub_stop(test_hub *h);                 /* and remove its folder */
/* What it does from now on, in hub.py's words. */
void test_hub_how(const test_hub *h, const char *words);
/* The last line with a POST of `log` in the script's folder; "": none. */
void test_hub_last_post(const test_hub *h, char *out, size_t cap);
size_t test_hub_n_requests(const test_hub *h);   /* since it began */

#endif
