/* store/session_row.h - a session as lists of them show it. */
#ifndef EBB_STORE_SESSION_ROW_H
#define EBB_STORE_SESSION_ROW_H
#include <stdint.h>

typedef struct ebb_session_row {
    int64_t  id;
    char     name[128];          /* title or given name */
    char     model[96];
    int64_t  created_ms, updated_ms;
    uint32_t n_messages, n_tokens;
} ebb_session_row;

#endif
