/* base/embed.h - a file of the source as part of the program. */
#ifndef EBB_BASE_EMBED_H
#define EBB_BASE_EMBED_H

/* The bytes of `path` (from the folder where make runs) as symbol[0..symbol_end), and a NUL after
 * them.  The object's rule in the Makefile must name the file, too. */
#define EBB_EMBED(symbol, path)                                                    \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"" path "\"\n"           \
            #symbol "_end:\n.byte 0\n.popsection\n");                              \
    extern const char symbol[] __attribute__((visibility("hidden")));              \
    extern const char symbol##_end[] __attribute__((visibility("hidden")))

#endif
