/* A chat on the scripted backend, with a store in a folder of its own: setup and teardown of
 * a test, and how one talks. */
#ifndef EBB_TESTS_CHAT_FIXTURE_H
#define EBB_TESTS_CHAT_FIXTURE_H
#include "ebb_test.h"

#include "chat/conversation/fake_backend.h"
#include "support/own_folder.h"

static char dir[64], db[96];
static fake_script script;

static int setup(void **state)
{
    (void)state;
    if (ebb_own_folder(dir, sizeof dir, "/tmp/ebb-chat-XXXXXX") != 0)
        return -1;
    snprintf(db, sizeof db, "%s/sessions.db", dir);
    script = (fake_script){ .n_tokens = 3, .fingerprint = "model one" };
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return ebb_own_folder_end(dir);
}

static ebb_chat *open_chat(const ebb_chat_opts *with)
{
    ebb_chat_ops ops = fake_ops(&script);
    ebb_chat_opts o = with ? *with : (ebb_chat_opts){ 0 };
    ebb_chat *c;
    ebb_error err;

    o.store_path = o.store_path ? o.store_path : db;
    o.sampling = o.sampling.top_p != 0 ? o.sampling : ops.default_sampling;
    if (ebb_chat_open_with(&o, &ops, &c, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return c;
}

static inline ebb_chat *open_ready(const ebb_chat_opts *with)
{
    ebb_chat *c = open_chat(with);

    assert_true(fake_wait(c, EBB_EVENT_READY, NULL, 0));
    return c;
}

static inline void send(ebb_chat *c, const char *text)
{
    ebb_error err;

    if (ebb_chat_send(c, text, strlen(text), &err) != EBB_OK)
        fail_msg("%s", err.msg);
}

static inline void done(ebb_chat *c)
{
    assert_true(fake_wait(c, EBB_EVENT_DONE, NULL, 0));
    assert_false(ebb_chat_is_busy(c));
}

static inline void say(ebb_chat *c, const char *text)
{
    send(c, text);
    done(c);
}

static inline const ebb_message *last(const ebb_chat *c)
{
    return ebb_chat_message(c, ebb_chat_n_messages(c) - 1);
}

/* The path as "user:hi assistant:a1.0 a1.1 ". */
static inline const char *path(const ebb_chat *c)
{
    static char s[2048];
    size_t n = 0;

    s[0] = '\0';
    for (size_t i = 0; i < ebb_chat_n_messages(c); i++)
        n += (size_t)snprintf(s + n, sizeof s - n, "%s[%s]", i ? " " : "",
                              ebb_chat_message(c, i)->text);
    return s;
}

#endif
