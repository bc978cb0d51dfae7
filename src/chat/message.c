/* Names of roles and endings (message.h). */
#include "message.h"

const char *ebb_role_name(ebb_role role)
{
    static const char *const names[] = {
        [EBB_ROLE_SYSTEM] = "system", [EBB_ROLE_USER] = "user", [EBB_ROLE_ASSISTANT] = "assistant",
    };

    return names[role];
}

const char *ebb_finish_name(ebb_finish finish)
{
    static const char *const names[] = {
        [EBB_FINISH_NONE] = "none", [EBB_FINISH_STOP] = "stop", [EBB_FINISH_LENGTH] = "length",
        [EBB_FINISH_CANCELED] = "cancelled", [EBB_FINISH_ERROR] = "error",
    };

    return names[finish];
}
