/* ebb/status.h - how every fallible function of ebb reports what went wrong.
 *
 * A function that can fail returns ebb_status and fills an optional
 * ebb_error.  The message is one line that names the object (path, tensor, byte offset) and, where
 * the user can do something, the next step. */
#ifndef EBB_STATUS_H
#define EBB_STATUS_H
#include "ebb/version.h"

EBB_API_BEGIN

#define EBB_STATUS_MAP(X)                                        \
    X(OK,          "ok")                                         \
    X(USAGE,       "wrong usage")                                \
    X(NOMEM,       "out of memory")                              \
    X(IO,          "input/output error")                         \
    X(NOTFOUND,    "not found")                                  \
    X(FORMAT,      "malformed data")                             \
    X(UNSUPPORTED, "not supported by this build, CPU or model")  \
    X(BUDGET,      "does not fit the memory budget")             \
    X(CONTEXT,     "does not fit the context window")            \
    X(LIMIT,       "beyond a limit that protects the program")   \
    X(BUSY,        "in use by somebody else")                    \
    X(CANCELED,    "canceled")

typedef enum ebb_status {
#define X(name, text) EBB_##name,
    EBB_STATUS_MAP(X)
#undef X
    EBB_STATUS_COUNT
} ebb_status;

/* Filled by the function that fails.  Owned by the caller, usually on the stack; every function
 * accepts err == NULL. */
typedef struct ebb_error {
    ebb_status  code;
    int         sys_errno;   /* errno of the failing call, 0 if there was none */
    const char *where;       /* "src/engine/gguf/gguf.c:212", static           */
    char        msg[400];    /* one line of UTF-8 that is safe to print: no control characters, no
                              * bidirectional ones.  A longer one loses its middle */
} ebb_error;

/* "not found" for EBB_NOTFOUND; never NULL. */
const char *ebb_status_text(ebb_status status);

/* Fill *err (if not NULL) and return `code`.  sys_errno is taken from errno
 * for EBB_IO and EBB_NOMEM and is 0 for the others.  Prefer EBB_FAIL. */
ebb_status ebb_error_set(ebb_error *err, ebb_status code, const char *where,
                         const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* What comes back is `code` itself, so that compilers and analyzers see which way a failure
 * goes. */
#define EBB_FAIL(err, code, ...) \
    ebb_error_is_set(ebb_error_set((err), (code), __FILE__ ":" EBB_STR(__LINE__), __VA_ARGS__), \
                     (code))

static inline ebb_status ebb_error_is_set(ebb_status set, ebb_status code)
{
    (void)set;
    return code;
}

EBB_API_END

#endif
