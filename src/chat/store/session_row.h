/* store/session_row.h - a session as lists of them show it. */
#ifndef EBB_STORE_SESSION_ROW_H
#define EBB_STORE_SESSION_ROW_H
#include <stdbool.h>
#include <stdint.h>

#define EBB_SESSION_WORD 136     /* a number behind more zeros than a name has */

typedef struct ebb_session_row {
    int64_t  id;
    char     word[EBB_SESSION_WORD];     /* finds it: its number, behind a 0 where that is the name
                                          * of another one */
    char     name[128];          /* title or given name */
    char     model[96];
    int64_t  created_ms, updated_ms;
    uint32_t n_messages, n_tokens;
    bool     has_namesake;       /* another one is called so, too, or has this for its number */
} ebb_session_row;

/* What finds it: its name, or its word where that is not its alone.  The text is the row's. */
static inline const char *ebb_session_row_name(const ebb_session_row *row)
{
    return row->has_namesake ? row->word : row->name;
}

#endif
