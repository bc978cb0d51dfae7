/* ebb: the program. */
#include <stdio.h>

int main(void)
{
    puts("ebb " EBB_VERSION);
    return 0;
}
