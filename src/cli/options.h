/* cli/options.h - the table of options: what each is called, which commands take it, and what it
 * does with its value. */
#ifndef EBB_CLI_OPTIONS_H
#define EBB_CLI_OPTIONS_H
#include "args.h"

typedef enum ebb_option_kind {
    EBB_OPTION_FLAG, EBB_OPTION_TEXT, EBB_OPTION_COUNT, EBB_OPTION_SIZE, EBB_OPTION_REAL,
    EBB_OPTION_NAME, EBB_OPTION_CALL
} ebb_option_kind;

typedef struct ebb_option {
    const char        *group;        /* heading, when it begins one */
    const char        *short_name, *long_name, *arg, *help;  /* short_name, arg: NULL: none */
    unsigned           mask;         /* EBB_FOR_* */
    ebb_option_kind    kind;
    size_t             offset;       /* of the field in ebb_args */
    const char *const *names;        /* NAME: the values of the enum, in order */
    ebb_status       (*call)(ebb_args *a, const char *value, ebb_error *err);    /* CALL */
} ebb_option;

/* Of rows with one name the first is what the configuration means by it, so it is that of chats. */
extern const ebb_option ebb_options[];
extern const size_t ebb_n_options;

/* Sets what the option says in *a; `value` NULL: that of a flag.  It must outlive *a.  Error:
 * USAGE. */
EBB_MUST_CHECK
ebb_status ebb_option_apply(const ebb_option *o, ebb_args *a, const char *value, ebb_error *err);
/* Which of the names, up to a NULL, the value is; -1: none. */
int ebb_option_name_index(const char *const *names, const char *value);

#endif
