/* A chat on the real engine: a small model and a store in a folder of the test's own, and how its
 * events are awaited. */
#ifndef EBB_TESTS_ENGINE_FIXTURE_H
#define EBB_TESTS_ENGINE_FIXTURE_H
#include "ebb_test.h"

#include <poll.h>

#include "base/clock.h"
#include "conversation/chat.h"
#include "support/own_folder.h"
#include "support/tiny_model.h"

static char dir[64], model[96], db[96];

static int setup(void **state)
{
    const ebb_tiny_opts tiny = { .seed = 2, .n_ctx = 2048, .n_layers = 3 };

    (void)state;
    if (ebb_own_folder(dir, sizeof dir, "/tmp/ebb-engine-XXXXXX") != 0)
        return -1;
    snprintf(model, sizeof model, "%s/tiny.gguf", dir);
    snprintf(db, sizeof db, "%s/sessions.db", dir);
    return ebb_tiny_write(&tiny, model) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return ebb_own_folder_end(dir);
}

/* Takes events until one is of this kind; an error fails the test.  notice[cap]: the last notice
 * before it; may be NULL. */
static void wait_event(ebb_chat *c, ebb_chat_event_kind kind, char *notice, size_t cap)
{
    struct pollfd p = { .fd = ebb_chat_fd(c), .events = POLLIN };
    /* Not a number of looks: some wakes bring no event. */
    double until = ebb_clock_s() + EBB_TEST_WAIT_S;
    ebb_chat_event ev;

    while (ebb_clock_s() < until) {
        while (ebb_chat_event_next(c, &ev)) {
            if (ev.kind == EBB_EVENT_ERROR)
                fail_msg("%s", ev.text);
            if (ev.kind == EBB_EVENT_NOTICE && notice)
                snprintf(notice, cap, "%s", ev.text);
            if (ev.kind == kind)
                return;
        }
        poll(&p, 1, 100);
    }
    fail_msg("nothing came");
}

#endif
