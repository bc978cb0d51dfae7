/* A line of a list with explanations (slash_impl.h). */
#include "command/slash_impl.h"

#include <string.h>

enum { USAGE_COLUMNS = 20 };     /* what is longer has its explanation on the next line */

void ebb_slash_explain(ebb_buf *out, const char *usage, const char *help)
{
    const char *gap = strlen(usage) > USAGE_COLUMNS - 2 ? "\n" : "";

    ebb_buf_addf(out, "%s%s%*s%s\n", usage, gap, USAGE_COLUMNS - (*gap ? 0 : (int)strlen(usage)), "", help);
}
