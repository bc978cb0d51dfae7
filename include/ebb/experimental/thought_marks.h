/* ebb/experimental/thought_marks.h - what models write around a thought, family by family: the
 * tokenizer shows these tokens, and the chat finds thoughts by them. */
#ifndef EBB_EXPERIMENTAL_THOUGHT_MARKS_H
#define EBB_EXPERIMENTAL_THOUGHT_MARKS_H

typedef enum ebb_thought_mark_kind {
    EBB_THOUGHT_MARK_TOKENS,     /* both are tokens: shown, even where a file has them as control
                                  * tokens */
    EBB_THOUGHT_MARK_TAG,        /* a tag of XML, which any answer may have */
    EBB_THOUGHT_MARK_TEXT,       /* more than a token */
} ebb_thought_mark_kind;

/* How an answer is kept whose thought came apart from its text.  What writes one writes these, to
 * the byte: ids are made anew from where a text differs. */
#define EBB_THOUGHT_BEFORE "<think>\n"
#define EBB_THOUGHT_BEHIND "\n</think>\n\n"

/* A row: the marks that begin and end a thought, and both with the blanks that stand there.  The
 * first one is what is written where a model has none. */
#define EBB_THOUGHT_MARKS(X)                                                                       \
    X("<think>", "</think>", EBB_THOUGHT_BEFORE, EBB_THOUGHT_BEHIND, EBB_THOUGHT_MARK_TOKENS)      \
    X("<thinking>", "</thinking>", "<thinking>\n", "\n</thinking>\n\n", EBB_THOUGHT_MARK_TAG)      \
    X("<|channel>thought", "<channel|>", "<|channel>thought\n", "<channel|>",                      \
      EBB_THOUGHT_MARK_TEXT)                                                                       \
    X("[THINK]", "[/THINK]", "[THINK]", "[/THINK]", EBB_THOUGHT_MARK_TOKENS)                       \
    X("<seed:think>", "</seed:think>", "<seed:think>", "</seed:think>", EBB_THOUGHT_MARK_TOKENS)   \
    X("<|inner_prefix|>", "<|inner_suffix|>", "<|inner_prefix|>", "<|inner_suffix|>",              \
      EBB_THOUGHT_MARK_TOKENS)                                                                     \
    X("<|START_THINKING|>", "<|END_THINKING|>", "<|START_THINKING|>", "<|END_THINKING|>",          \
      EBB_THOUGHT_MARK_TOKENS)

/* gpt-oss has no such pair (harmony): its answer is a row of messages, of which each names its
 * channel before its text.  The thought is the one in "analysis", the answer that in "final". */
#define EBB_CHANNEL_START "<|start|>"
#define EBB_CHANNEL_NAME  "<|channel|>"
#define EBB_CHANNEL_TEXT  "<|message|>"
#define EBB_CHANNEL_END   "<|end|>"
#define EBB_CHANNEL_THOUGHT_BEFORE EBB_CHANNEL_NAME "analysis" EBB_CHANNEL_TEXT
#define EBB_CHANNEL_THOUGHT_BEHIND                                                                 \
    EBB_CHANNEL_END EBB_CHANNEL_START "assistant" EBB_CHANNEL_NAME "final" EBB_CHANNEL_TEXT

#endif
