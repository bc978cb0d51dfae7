/* gguf/gguf_zip.h - a GGUF file inside another one: a stored member of a zip archive, which a
 * llamafile is.
 *
 *     [program][PK34 header, name, extra][the GGUF's bytes as they are]...
 *     [PK12 ...: the list of members][PK56: where the list is]
 *
 * A zip is read from its end.  Archives above 4 GiB have a second end record and sizes in extra
 * fields (ZIP64). */
#ifndef EBB_GGUF_ZIP_H
#define EBB_GGUF_ZIP_H
#include "ebb/experimental/inspect.h"
#include "ebb/status.h"
#include "gguf/gguf_parse.h"

/* Where in its file a GGUF is. */
typedef struct ebb_gguf_span {
    uint64_t begin, n_bytes;
} ebb_gguf_span;

/* Find the model in the file of n_bytes behind `fd`: the member that is called `wanted`, with or
 * without its folders, or (NULL) the only one that is a language model.  A file that is no zip,
 * or a zip without any GGUF, is the span from its first byte to its last. Errors: FORMAT (a
 * member that is cut off, a damaged list), NOTFOUND (no member of that name), LIMIT (several
 * models: which?), UNSUPPORTED (compressed or encrypted), IO, NOMEM.  Cost: reads 64 KiB, and
 * more of what is a zip. */
EBB_MUST_CHECK
ebb_status ebb_gguf_find_span(int fd, const char *path, const char *wanted, uint64_t n_bytes,
                              ebb_gguf_span *out, ebb_error *err);

/* gguf_kind.c: what a file of this general.architecture is for. */
ebb_model_kind ebb_gguf_kind_of_arch(const char *name);
/* What an open file is for. */
ebb_model_kind ebb_gguf_kind(const ebb_gguf *g);
/* And what the GGUF at a span of a file is for.  Errors: as ebb_model_read_kind. */
EBB_MUST_CHECK
ebb_status ebb_gguf_read_kind(int fd, const char *path, ebb_gguf_span at, ebb_model_kind *out,
                              ebb_error *err);

#endif
