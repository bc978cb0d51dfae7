/* ebb plan: where the memory would go. */
#include "cli.h"

int ebb_cli_plan(ebb_args *a)
{
    ebb_model *m = NULL;
    ebb_error err = { 0 };
    int status = EBB_EXIT_OK;
    ebb_status st = ebb_cli_open_model(a, &m, &err);

    if (st == EBB_OK)
        st = ebb_plan_ollama(a, m, &status, &err);
    ebb_model_close(m);
    return st == EBB_OK ? status : ebb_cli_fail(&err);
}
