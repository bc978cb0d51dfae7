/* cli/cmd_doctor.h - what `ebb doctor` looks at, and the report it makes of it. */
#ifndef EBB_CLI_CMD_DOCTOR_H
#define EBB_CLI_CMD_DOCTOR_H
#include <jansson.h>
#include <stdint.h>

#include "ebb/experimental/plan.h"
#include "os/limits.h"

/* One line of the report. */
typedef struct ebb_doctor_finding {
    const char *key;             /* in the JSON object */
    char        text[480];       /* what was found */
    char        advice[200];     /* "" if there is nothing to do */
} ebb_doctor_finding;

#define EBB_MAX_FINDINGS 96
typedef struct ebb_doctor_report {
    ebb_doctor_finding list[EBB_MAX_FINDINGS];
    uint32_t    n;
    json_t     *figures;         /* numbers beside the texts */
} ebb_doctor_report;

/* A finding, its advice, and a number for the JSON object alone.  Beyond EBB_MAX_FINDINGS the last
 * one is overwritten. */
ebb_doctor_finding *ebb_doctor_add(ebb_doctor_report *r, const char *key, const char *fmt,
                                   ...) __attribute__((format(printf, 3, 4)));
void ebb_doctor_advise(ebb_doctor_finding *f, const char *fmt,
                       ...) __attribute__((format(printf, 2, 3)));
void ebb_doctor_figure(ebb_doctor_report *r, const char *key, double v);

/* The looks.  `root` is the prefix of /proc and /sys ("" or a test's fake tree). */
void ebb_doctor_memory(ebb_doctor_report *r, const ebb_limits *l, const ebb_machine *m);
void ebb_doctor_swap(ebb_doctor_report *r, const char *root, const ebb_limits *l);
void ebb_doctor_huge_pages(ebb_doctor_report *r, const char *root);
void ebb_doctor_cpu(ebb_doctor_report *r, const char *root, const ebb_machine *m);
/* Figures that are remembered, with their age, and what speaks against them. */
void ebb_doctor_speeds(ebb_doctor_report *r, const ebb_known_speed *list, size_t n, bool was_asked);
void ebb_doctor_io_uring(ebb_doctor_report *r, const char *root, const ebb_disk_reader *uring);
void ebb_doctor_file_system(ebb_doctor_report *r, const char *name, bool says_rotational,
                            double best_bytes_s);
/* All about the disk that holds `path`: its file system, the readers, the page cache. */
void ebb_doctor_disk(ebb_doctor_report *r, const char *root, const char *path);

#endif
