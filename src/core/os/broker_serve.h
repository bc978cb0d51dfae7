/* os/broker_serve.h - the broker's side, and what goes over its socket. */
#ifndef EBB_OS_BROKER_SERVE_H
#define EBB_OS_BROKER_SERVE_H
#include <stdint.h>

#include "os/broker.h"

typedef enum ebb_broker_kind {
    EBB_BROKER_SPAWN, EBB_BROKER_OPEN, EBB_BROKER_CREATE, EBB_BROKER_REMOVE_SOCKET,
} ebb_broker_kind;

/* One packet, with three descriptors (SPAWN) or one that has the file's contents (CREATE). */
typedef struct ebb_broker_question {
    ebb_broker_kind kind;
    ebb_spawn_group group;
    pid_t           here;        /* the process group of whoever asks */
    bool            is_direct;
    uint32_t        n_text;      /* bytes of text[] that are sent */
    char            text[16384]; /* words, each with its 0; a path is one */
} ebb_broker_question;

/* One packet, with a descriptor (OPEN). */
typedef struct ebb_broker_answer {
    int       failed;            /* errno */
    pid_t     pid;
    ebb_error err;               /* of CREATE */
} ebb_broker_answer;

/* From here on that process is asked, at its socket. */
void ebb_broker_adopt(pid_t pid, int fd);

#endif
