/* chat/models/guide.h - the model that is part of the program: models/guide.gguf. */
#ifndef EBB_CHAT_GUIDE_H
#define EBB_CHAT_GUIDE_H
#include <stddef.h>

extern const unsigned char ebb_guide_data[];
extern const size_t ebb_guide_bytes;

#endif
