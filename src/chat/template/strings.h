/* template/strings.h - strings that know who wrote them: building, cutting,
 * searching.  Positions are bytes unless a name says cp (code points). */
#ifndef EBB_TEMPLATE_STRINGS_H
#define EBB_TEMPLATE_STRINGS_H
#include "template/value.h"

/* -- Making ------------------------------------------------------------------------ */
tpl_str *ebb_tpl_str_new(tpl_vm *vm, const char *p, size_t n, tpl_taint taint); /* a copy */
/* Shares the bytes. */
tpl_str *ebb_tpl_str_cut(tpl_vm *vm, const tpl_str *s, size_t from, size_t to);
/* Appends in place if it can. */
tpl_str *ebb_tpl_concat(tpl_vm *vm, const tpl_str *a, const tpl_str *b);

/* A string that grows: init, append, take.  `part` is s[from..to), `raw` bytes with their mark,
 * `puts` text of the template's own, `cp` one code point. */
void     ebb_tpl_sb_init(tpl_sb *sb, tpl_vm *vm);
void     ebb_tpl_sb_add(tpl_sb *sb, const tpl_str *s);
void     ebb_tpl_sb_part(tpl_sb *sb, const tpl_str *s, size_t from, size_t to);
void     ebb_tpl_sb_raw(tpl_sb *sb, const char *p, size_t n, tpl_taint taint);
void     ebb_tpl_sb_puts(tpl_sb *sb, const char *text);
void     ebb_tpl_sb_cp(tpl_sb *sb, uint32_t cp, tpl_taint taint);
/* N times; LIMIT beyond a million. */
void     ebb_tpl_sb_pad(tpl_sb *sb, size_t n, const char *fill);
tpl_str *ebb_tpl_sb_finish(tpl_sb *sb);

/* -- Looking ------------------------------------------------------------------------ */
bool     ebb_tpl_str_eq(const tpl_str *a, const tpl_str *b);
bool     ebb_tpl_str_is(const tpl_str *s, const char *text);
/* By code point. */
int      ebb_tpl_str_cmp(const tpl_str *a, const tpl_str *b);
/* What walks over a text accounts for it, as do the searches below: 64 bytes are a step. */
size_t   ebb_tpl_str_cps(tpl_vm *vm, tpl_str *s);        /* code points */
/* Byte position of code point cp <= cps. */
size_t   ebb_tpl_str_at(tpl_vm *vm, tpl_str *s, size_t cp);
size_t   ebb_tpl_str_to_cp(tpl_vm *vm, const tpl_str *s, size_t at);
/* First (or last) place of `what` in s[from..to); SIZE_MAX: none. */
size_t   ebb_tpl_str_find(tpl_vm *vm, const tpl_str *s, const tpl_str *what,
                          size_t from, size_t to);
size_t   ebb_tpl_str_rfind(tpl_vm *vm, const tpl_str *s, const tpl_str *what,
                           size_t from, size_t to);
/* Decode at a position. */
uint32_t ebb_tpl_str_cp(const tpl_str *s, size_t at, size_t *len);
/* at + len, for who looks at each code point of a text: accounts for a step per 8 bytes, in parts,
 * so that a long text is given up on the way. */
size_t   ebb_tpl_str_next(tpl_vm *vm, size_t at, size_t len);

/* -- Code points ----------------------------------------------------------------------- */
bool     ebb_tpl_cp_is_space(uint32_t cp);       /* Python's str.isspace */
bool     ebb_tpl_cp_is_alpha(uint32_t cp);
bool     ebb_tpl_cp_is_digit(uint32_t cp);       /* any decimal digit */
bool     ebb_tpl_cp_is_word(uint32_t cp);        /* \w: letters, digits, _ */
bool     ebb_tpl_cp_is_upper(uint32_t cp);
bool     ebb_tpl_cp_is_lower(uint32_t cp);
bool     ebb_tpl_cp_is_printable(uint32_t cp);   /* what repr() shows as it is */

/* -- Changing ---------------------------------------------------------------------------- */
typedef enum tpl_case { TPL_UPPER, TPL_LOWER, TPL_CAPITALIZE, TPL_TITLE, TPL_SWAP } tpl_case;
tpl_str *ebb_tpl_str_case(tpl_vm *vm, const tpl_str *s, tpl_case how);
enum { TPL_LEFT = 1, TPL_RIGHT = 2 };
/* NULL: white space. */
tpl_str *ebb_tpl_str_strip(tpl_vm *vm, const tpl_str *s, const tpl_str *chars, unsigned sides);
tpl_str *ebb_tpl_str_replace(tpl_vm *vm, const tpl_str *s, const tpl_str *old, const tpl_str *by,
                             int64_t max);
tpl_list *ebb_tpl_str_split(tpl_vm *vm, const tpl_str *s, const tpl_str *sep, int64_t max,
                            bool from_right);
tpl_list *ebb_tpl_str_lines(tpl_vm *vm, const tpl_str *s, bool keep_ends);
tpl_str *ebb_tpl_str_justify(tpl_vm *vm, tpl_str *s, int64_t width, const tpl_str *fill,
                             unsigned pad_sides);
tpl_str *ebb_tpl_str_repeat(tpl_vm *vm, const tpl_str *s, int64_t n);
tpl_str *ebb_tpl_str_escape(tpl_vm *vm, const tpl_str *s);       /* & < > " ' for HTML */

/* "%s" % args and "{}".format(...) (format.c). */
tpl_str *ebb_tpl_percent(tpl_vm *vm, tpl_str *fmt, tpl_val args);
tpl_str *ebb_tpl_format(tpl_vm *vm, tpl_str *fmt, const tpl_call *call);

#endif
