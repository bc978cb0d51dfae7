/* The bytes of models/guide.gguf (guide.h), page-aligned, as the assembler reads them. */
#include "models/guide.h"

__asm__(".section .rodata\n"
        ".balign 4096\n"
        ".global ebb_guide_data\n"
        "ebb_guide_data: .incbin \"models/guide.gguf\"\n"
        ".Lguide_end: .byte 0\n"
        ".balign 8\n"
        ".global ebb_guide_bytes\n"
        "ebb_guide_bytes: .quad .Lguide_end - ebb_guide_data\n"
        ".previous\n");
