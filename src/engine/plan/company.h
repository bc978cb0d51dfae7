/* plan/company.h - who else used this machine while something was measured. */
#ifndef EBB_COMPANY_H
#define EBB_COMPANY_H
#include "os/proc.h"

/* A moment: what this process and the whole machine had used until then. */
typedef struct ebb_company_mark {
    double      clock_s, own_s;
    ebb_cpu_use machine;
    bool        is_known;
} ebb_company_mark;
void ebb_company_begin(ebb_company_mark *mark);
/* The share of the machine's processor time, in [0, 1], that others had since, guests of the same
 * host included; `unknown` where less than least_s has passed or the system does not say. */
double ebb_company_since(const ebb_company_mark *mark, double least_s, double unknown);

#endif
