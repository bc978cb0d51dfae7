/* model_file.h - the file side of ebb/model.h, for the rooms of the engine.
 *
 * An ebb_model is an open GGUF, the facts that everybody asks for, and the
 * tokenizer.  What an architecture needs beyond the facts it reads from the
 * metadata itself: ebb_gguf_get_f64(ebb_model_gguf(m), ".rope.freq_base", &x). */
#ifndef EBB_MODEL_FILE_H
#define EBB_MODEL_FILE_H
#include "ebb/model.h"
#include "gguf/gguf.h"

/* Metadata, tensor index, and for each part its path, open descriptor or memory. */
const ebb_gguf *ebb_model_gguf(const ebb_model *m);

#endif
