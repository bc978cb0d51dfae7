/* ebb/experimental/inspect.h - more of a model file than ebb/model.h: partial files, the kind of a
 * file, all keys and tensors, logits of every position; for `ebb inspect`, `ebb pull`, tests. */
#ifndef EBB_EXPERIMENTAL_INSPECT_H
#define EBB_EXPERIMENTAL_INSPECT_H
#include "ebb/experimental/type.h"
#include "ebb/session.h"

/* A file of a model that is still being downloaded. */
typedef struct ebb_partial_file {
    const char *path;            /* of the file with the bytes so far, from the first one on */
    const char *name;            /* its name when it is complete, for messages */
    uint64_t    n_bytes;         /* its size when it is complete; UINT64_MAX: unknown */
} ebb_partial_file;
/* ebb_model_open of a model whose n files (in order) are still being downloaded, as soon as their
 * headers are complete: for everything that reads no weights, such as a plan.  BUSY: the header of
 * file *i_busy is not complete yet. */
EBB_MUST_CHECK
ebb_status ebb_model_open_partial(const ebb_partial_file *files, size_t n, size_t *i_busy,
                                  ebb_model **out, ebb_error *err);

/* What a file is for, by its metadata. */
typedef enum ebb_model_kind {
    EBB_KIND_CHAT,               /* a language model */
    EBB_KIND_PROJECTOR,          /* multimodal projector (mmproj) for another model */
    EBB_KIND_EMBEDDER,           /* embedding model or reranker */
    EBB_KIND_DRAFTER,            /* drafts for one model from its hidden states (EAGLE) */
    EBB_KIND_ADAPTER,            /* LoRA adapter or control vector of another model */
    EBB_KIND_IMATRIX,            /* importance matrix, for quantizing */
    EBB_KIND_VOCABULARY,         /* a vocabulary without weights */
    EBB_KIND_SOUND,              /* audio decoder (vocoder) */
} ebb_model_kind;
const char *ebb_model_kind_name(ebb_model_kind kind);        /* "projector" */

/* A model in a llamafile is named "FILE@NAME.gguf": how many bytes of `path` are FILE; all of them
 * if it does not end in @NAME.gguf. */
size_t ebb_model_path_file(const char *path);

/* The kind of the file at `path`.  Errors: NOTFOUND, IO, NOMEM, FORMAT and UNSUPPORTED (no GGUF,
 * or a damaged one).  Cost: reads at most 256 KiB and opens no vocabulary. */
EBB_MUST_CHECK
ebb_status ebb_model_read_kind(const char *path, ebb_model_kind *out, ebb_error *err);

/* How many keys the header of the model's (first) file has. */
size_t ebb_model_n_meta(const ebb_model *m);
/* Key i and its value as text ("[151936 strings]" for long arrays), written
 * to buf with a final NUL, cut to fit; cap 0: no value.  Returns the key. */
const char *ebb_model_meta(const ebb_model *m, size_t i, char *buf, size_t cap);

typedef struct ebb_tensor_info {
    const char *name;
    ebb_type    type;
    uint32_t    n_dims;
    uint64_t    dims[4];         /* dims[0] runs fastest: the row length */
    uint64_t    n_bytes;
    uint32_t    part;            /* which file of a split model, from 0 */
    uint64_t    offset;          /* from the start of that file */
} ebb_tensor_info;
size_t ebb_model_n_tensors(const ebb_model *m);  /* of all parts */
/* i < n_tensors; the name is the model's */
void ebb_model_tensor(const ebb_model *m, size_t i, ebb_tensor_info *out);

/* Computes ids[0..n) from position 0 in batches of n_batch tokens and calls `fn` with the logits of
 * each position, in order: for `inspect logits`, perplexity and tests.  The sequence is emptied
 * first and is ids[0..n) afterwards; on failure it is as far as it was computed.  n_batch 0, or
 * more than the plan's: the plan's.  Errors: as ebb_session_sync. */
typedef void ebb_logits_fn(void *arg, size_t pos, const float *logits, size_t n_vocab);
EBB_MUST_CHECK
ebb_status ebb_session_eval(ebb_session *s, const ebb_token *ids, size_t n, uint32_t n_batch,
                            ebb_logits_fn *fn, void *arg, ebb_error *err);

#endif
