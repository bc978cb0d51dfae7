/* base/median.h - the middle one of some measurements, which a few disturbed ones do not change. */
#ifndef EBB_MEDIAN_H
#define EBB_MEDIAN_H
#include <stddef.h>

/* Of v[0..n), n > 0, none of them a NaN, which are sorted for it; of an even number the mean of the
 * two in the middle. */
double ebb_median(double *v, size_t n);

#endif
