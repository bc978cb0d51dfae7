/* What a server may send: events cut anywhere, JSON or not, of either protocol. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "net/event_stream.h"
#include "remote/answer.h"

enum { SMALL_EVENT = 4096 };

static ebb_status take_event(void *arg, const char *data, size_t n, ebb_error *err)
{
    ebb_answer *a = arg;
    size_t before = a->n_text;
    ebb_status st;

    FUZZ_MUST(data[n] == '\0' && n <= SMALL_EVENT);
    st = a->why[sizeof a->why - 1] ? EBB_FORMAT : n % 2 ? ebb_answer_add_chunk(a, data, n, err)
                                                        : ebb_answer_add_line(a, data, n, err);
    FUZZ_MUST(a->n_text >= before && (st == EBB_OK || !err || err->msg[0]));
    FUZZ_MUST(!a->has_cached || a->n_cached <= a->n_prompt);
    FUZZ_MUST(a->progress_done <= a->progress_total || !a->progress_total);
    FUZZ_MUST(!a->text.data || !memchr(a->text.data, 0, a->text.len));
    return st;
}

/* The whole text of an answer whose bytes come `step` at a time. */
static ebb_status read_answer(const char *bytes, size_t n, size_t step, bool is_lines, ebb_answer *a)
{
    ebb_event_stream s;
    ebb_error err = { 0 };
    ebb_status st = EBB_OK;

    ebb_event_stream_init(&s, is_lines, SMALL_EVENT);
    for (size_t at = 0, len; st == EBB_OK && at < n; at += len) {
        len = n - at < step ? n - at : step;
        st = ebb_event_stream_add(&s, bytes + at, len, take_event, a, &err);
    }
    if (st == EBB_OK)
        st = ebb_event_stream_end(&s, take_event, a, &err);
    ebb_answer_end(a);
    ebb_event_stream_fini(&s);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ebb_answer whole = { 0 }, pieces = { 0 };
    char words[240];
    uint32_t n_ctx;
    bool is_lines = n && data[0] & 1;
    size_t step = n ? 1 + (data[0] >> 1) % 16 : 1;
    ebb_status x = read_answer((const char *)data, n, n ? n : 1, is_lines, &whole);
    ebb_status y = read_answer((const char *)data, n, step, is_lines, &pieces);

    /* Where the bytes are cut makes no difference. */
    FUZZ_MUST(x == y && whole.n_text == pieces.n_text && whole.is_done == pieces.is_done &&
              whole.n_pieces == pieces.n_pieces);
    FUZZ_MUST(whole.text.len == pieces.text.len &&
              (!whole.text.len || memcmp(whole.text.data, pieces.text.data, whole.text.len) == 0));
    ebb_answer_error_text((const char *)data, n, words, &n_ctx);
    FUZZ_MUST(memchr(words, 0, sizeof words));
    FUZZ_MUST(ebb_answer_error_tokens((const char *)data, n) >= n_ctx);
    ebb_answer_fini(&whole);
    ebb_answer_fini(&pieces);
    return 0;
}
