/* pull/pull_events.h - what happens in a download, as lines of JSON: `ebb pull --json-lines` writes
 * them for a program that follows, as the chat does.
 *
 *     {"event":"notice","text":...}
 *     {"event":"progress","file":NAME,"index":0,"files":1,"done":B,"total":B|null,
 *      "bytes_s":X|null,"left_s":X|null,"checking":false}
 *     {"event":"done","file":NAME,"path":...,"bytes":B,"was_there":false,"verified":true,
 *      "seconds":X}
 *     {"event":"error","text":...} */
#ifndef EBB_PULL_EVENTS_H
#define EBB_PULL_EVENTS_H
#include "pull/download.h"

typedef enum ebb_pull_event_kind { EBB_PULL_NOTICE, EBB_PULL_PROGRESS, EBB_PULL_DONE,
                                   EBB_PULL_ERROR } ebb_pull_event_kind;

typedef struct ebb_pull_event {
    ebb_pull_event_kind kind;
    char     text[1024];         /* NOTICE, ERROR: unfiltered, as everything from a server */
    char     file[256];          /* PROGRESS, DONE: a name without a folder */
    unsigned i_file, n_files;    /* PROGRESS: which of how many, from 0 */
    ebb_download_progress progress;
    char     path[4096];         /* DONE */
    uint64_t n_bytes;
    bool     was_there, is_verified;
    double   seconds;
} ebb_pull_event;

/* Append the event and a line end.  false: no memory. */
bool ebb_pull_event_add(ebb_buf *out, const ebb_pull_event *e);
/* What a line of n bytes says; false: it is no event. */
bool ebb_pull_event_read(const char *line, size_t n, ebb_pull_event *out);

#endif
