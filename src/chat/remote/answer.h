/* remote/answer.h - an answer as it comes: events of a server's stream, and what they add up to. */
#ifndef EBB_REMOTE_ANSWER_H
#define EBB_REMOTE_ANSWER_H
#include "backend/backend.h"
#include "base/buf.h"
#include "tree/message.h"

/* Most of one event; of all text of an answer. */
enum { EBB_EVENT_BYTES = 1 << 20, EBB_ANSWER_BYTES = 1 << 20 };

typedef enum ebb_answer_part {
    EBB_IN_NOTHING, EBB_IN_THOUGHT, EBB_IN_BODY,
    EBB_IN_REFUSAL,              /* OpenAI's way to say no; the text says that it is one */
} ebb_answer_part;

/* A zeroed one is an answer of which nothing was received. */
typedef struct ebb_answer {
    ebb_buf    text;             /* text received and not taken yet; a thought is between
                                  * <think> and </think> */
    size_t     n_text;           /* bytes of all text so far */
    ebb_answer_part in;
    bool       is_done;          /* the server says that this is all */
    bool       has_message;      /* something in it is of an answer, though it may have no text */
    bool       calls_tool;       /* which some servers end with "stop" */
    bool       has_finish;
    ebb_finish finish;           /* STOP or LENGTH */
    char       why[64];          /* an ending that is neither, in the server's word */
    uint32_t   n_pieces;         /* that came with text: about as many tokens */
    bool       has_usage, has_cached;
    uint32_t   n_prompt, n_cached, n_generated;
    double     prefill_s, decode_s;      /* by the server's clock; 0: it does not say */
    uint32_t   n_reused_disk;    /* of the cached ones, where an ebb says so */
    uint64_t   number, next;     /* the server keeps the answer under this number, and its piece
                                  * `next` comes next; 0: it does not */
    bool       has_figures;      /* an ebb has sent some, which are not taken yet: */
    ebb_server_figures figures;
    uint32_t   progress_done, progress_total;    /* of the prompt, what is cached left out; total 0:
                                                  * not told */
} ebb_answer;
void ebb_answer_fini(ebb_answer *a);

/* One event of a chat completion, "[DONE]" among them.  Errors: FORMAT (no JSON, or none of an
 * answer), LIMIT (too much text), IO (the server reports an error, in its words), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_answer_add_chunk(ebb_answer *a, const char *event, size_t n, ebb_error *err);
/* One line of Ollama's own protocol; the same errors. */
EBB_MUST_CHECK
ebb_status ebb_answer_add_line(ebb_answer *a, const char *line, size_t n, ebb_error *err);
/* Whether it has ended as answers do.  UNSUPPORTED: a filter has cut it off, or the model has
 * called a tool; IO: the server could not go on. */
EBB_MUST_CHECK
ebb_status ebb_answer_check_finish(const ebb_answer *a, ebb_error *err);
/* Nothing more comes: a thought that is open is closed. */
void ebb_answer_end(ebb_answer *a);

/* What a body of an error says: the message in it, whichever form it has; "" if it says nothing.
 * *n_ctx: the context that something did not fit, 0: it is about something else. */
void ebb_answer_error_text(const char *body, size_t n, char out[240], uint32_t *n_ctx);
/* The tokens of what did not fit: so many at least; 0: it is about something else. */
uint32_t ebb_answer_error_tokens(const char *body, size_t n);

#endif
