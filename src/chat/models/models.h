/* chat/models/models.h - the model files on this machine. */
#ifndef EBB_CHAT_MODELS_H
#define EBB_CHAT_MODELS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "ebb/experimental/inspect.h"
#include "ebb/experimental/plan.h"
#include "ebb/status.h"

typedef struct ebb_model_file {
    char    *path;               /* first part of a split model */
    char    *name;               /* what its store calls it: "llama3.2"; NULL: what its file is
                                  * called */
    ebb_buf  more_names;         /* that mean it too, one a line */
    const char *store;           /* whose it is: "Ollama"; NULL: it lies where ebb's own do */
    const char *note;            /* what of it does not count here: "without its adapter"; or
                                  * NULL */
    bool     is_old_version;     /* of a file of the hub's; a newer one is here, too */
    bool     is_name_shared;     /* with another that can be talked to */
    ebb_model_kind kind;         /* CHAT also where that cannot be read */
    uint64_t n_bytes;            /* of all parts */
    int64_t  changed_ms;         /* Unix time */
    uint64_t device, inode;
} ebb_model_file;

/* All *.gguf and *.llamafile of the places in $EBB_MODELS (directories or files, separated by
 * colons) and of $XDG_DATA_HOME/ebb/models, two directories deep, and what other programs keep on
 * this machine (stores.c), which is only read; each file once; newest first, the larger of two of
 * the same time.  A place that is not there is no error.  Error: NOMEM.  Cost: lists directories,
 * reads Ollama's manifests and the beginning of every file. */
EBB_MUST_CHECK
ebb_status ebb_models_find(ebb_model_file **out, size_t *n, ebb_error *err);
void ebb_models_free(ebb_model_file *files, size_t n);
/* Those of them that can be talked to: no projectors, embedders, drafters, adapters; and no old
 * versions.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_models_find_chat(ebb_model_file **out, size_t *n, ebb_error *err);
/* Call fn with the path of every model file, each part of its own, in the places that are ebb's and
 * the user's ($EBB_MODELS, the data folder), not in stores.  Nothing is read of any. */
void ebb_models_each_own(void (*fn)(void *arg, const char *path), void *arg);
/* What to call it: its store's name, else its file's.  Unfiltered, like all names. */
const char *ebb_models_name(const ebb_model_file *f);
/* What a user types to mean this one: its name, where others have that its path. */
const char *ebb_models_word(const ebb_model_file *f);

/* The same for files that `ebb pull` has begun, *.gguf.part; n_bytes: received of each so far. */
EBB_MUST_CHECK
ebb_status ebb_models_find_partial(ebb_model_file **out, size_t *n, ebb_error *err);
/* Replace *out by the folder where new models belong: the first of $EBB_MODELS that is no file,
 * else the data folder.  It need not be there.  Errors: NOTFOUND (no home), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_models_folder(ebb_buf *out, ebb_error *err);
/* "x-00002-of-00003.gguf": which part; false: the file is whole. */
bool ebb_models_is_part(const char *path, unsigned *part, unsigned *of);
#define EBB_MODELS_MAX_PARTS 512u                /* of a model that the engine opens */

/* An id of the file at `path` in its present state that does not reveal the path.  false: there is
 * no such file. */
enum { EBB_MODELS_FILE_ID = 40 };
bool ebb_models_file_id(const char *path, char out[EBB_MODELS_FILE_ID]);
/* Is a file of that path there, or (FILE@NAME.gguf) one that may hold it? */
bool ebb_models_is_file(const char *path);

/* The name of the embedded guide where a model may be named. */
#define EBB_MODELS_GUIDE "guide"
/* And where ebb is to choose. */
#define EBB_MODELS_AUTO "auto"

/* The file that a user means by `name`: a file of that path (~/ is the home), else the model found
 * on this machine that is called just so, else (with or without .gguf or :latest, in any case)
 * nearly so, or, where it has no slash, the only one for a chat whose name has it in it.  Of the
 * versions of one file of the hub's the present one is meant.  NOTFOUND says what there is; LIMIT:
 * several are meant; IO: a folder on the way may not be entered.  *path is for free(). */
EBB_MUST_CHECK
ebb_status ebb_models_resolve(const char *name, char **path, ebb_error *err);

/* The name of one for a chat that `name` is nearly, or the beginning of one, up to a sign that is
 * no letter; for free().  NULL: none is near (or no memory). */
char *ebb_models_nearly(const char *name, const ebb_model_file *files, size_t n);

/* -- What its store recommends (models_advice.c) --------------------------------------------- */

enum { EBB_ADVICE_NUMBERS = 6 };
typedef struct ebb_model_advice {
    char  *name;                 /* what the store calls the model; NULL: no store says anything */
    char  *system;               /* a system prompt; NULL: none */
    bool   has_number[EBB_ADVICE_NUMBERS];
    double numbers[EBB_ADVICE_NUMBERS];
} ebb_model_advice;
/* Fill *out for the weights at `path`: of a model in Ollama's store its parameters and system
 * prompt, of any other nothing.  For ebb_model_advice_fini.  Cost: reads the store's manifests. */
void ebb_models_read_advice(const char *path, ebb_model_advice *out);
/* The number for a key of a model's own advice, "general.sampling.temp"; false: none. */
bool ebb_model_advice_number(const ebb_model_advice *a, const char *key, double *out);
void ebb_model_advice_fini(ebb_model_advice *a);

/* -- Which to take (models_rate.c) ---------------------------------------------------- */

/* How a model would do on a machine.  Worth: 10^9 parameters times what is left of
 * them at so many bits each; of a mixture of experts the geometric mean of all and those used. */
typedef struct ebb_model_rating {
    ebb_model_file file;
    char     name[96], quantization[16];
    char     why_not[200];       /* why it cannot be used; "" */
    uint64_t n_params;
    bool     has_template;       /* a chat template of its own */
    double   score;
    double   context_worth;      /* up to 1: the plan's context beside the mode's; 0 counts as 1 */
    ebb_plan plan;               /* where it can be read */
} ebb_model_rating;

/* Rate files[0..n) (taken over, also on failure), the best first: of those with a chat template
 * that stay in memory and do 1.5 tok/s the one with most worth * v / (v + 1 tok/s) for its speed v,
 * then slower ones, the fastest first, then those that are read from disk in part.  *out is for
 * ebb_models_rating_free.  With `measures`, *machine gets the speeds that the models need and that
 * it lacks.  Error: NOMEM.  Cost: opens every file's header, in the order given, but none later
 * than ebb_clock_s() `until_s` (0: however long it takes); why_not says so of the others. */
EBB_MUST_CHECK
ebb_status ebb_models_rate(ebb_model_file *files, size_t n, const ebb_engine_opts *opts,
                           ebb_machine *machine, bool measures, double until_s,
                           ebb_model_rating **out, ebb_error *err);
void ebb_models_rating_free(ebb_model_rating *r, size_t n);
/* The order of ebb_models_rate, for qsort. */
int ebb_models_compare(const void *a, const void *b);
/* What remains of a model whose weights were rounded to so many bits: by the size of the
 * smaller model that is as good.  Little is lost down to 5 bits, much below 3. */
double ebb_models_quality(double bits);
/* One line: the first is taken, why, and why not a larger one. */
void ebb_models_explain(const ebb_model_rating *r, size_t n, ebb_buf *out);

/* The model to use when none is named: the one the user named last if it still runs, else
 * the best; NULL: the embedded guide.  *why gets a line for the user, or nothing.  Up to
 * half a second: headers are read, and with several models the machine is measured.
 * Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_models_choose(const ebb_engine_opts *opts, char **path, ebb_buf *why,
                             ebb_error *err);

/* Could a chat with the model at `path` begin, if there were memory for it?  For what closes
 * another one.  Errors: those of ebb_model_open and ebb_plan_make; UNSUPPORTED (a tokenizer that is
 * not known).  Cost: as ebb_model_open. */
EBB_MUST_CHECK
ebb_status ebb_models_check(const char *path, const ebb_engine_opts *opts, ebb_error *err);
/* Open the model that *path names (as ebb_models_resolve, or the guide), NULL: ebb_models_choose;
 * *path, for free(), is then what that was.  Errors of both and of ebb_model_open, and UNSUPPORTED
 * (a tokenizer that is not known). */
EBB_MUST_CHECK
ebb_status ebb_models_open(const ebb_engine_opts *opts, char **path, ebb_model **out, ebb_buf *why,
                           ebb_error *err);

/* -- What drafts for it (models_draft.c) ------------------------------------------------ */

/* Open the model that `name` means to draft for `host`; "auto": the best one below.  *out is the
 * caller's to close.  Where none is to be had *out is NULL and *why says it in a line: with auto,
 * and with may_go also if the named one is not there, cannot draft for this host, or is the host
 * itself.  Errors: those of ebb_models_resolve and ebb_model_open.  Cost of auto: what the machine
 * is not known by is measured, up to half a second, and each smaller file's vocabulary is read. */
EBB_MUST_CHECK
ebb_status ebb_models_open_draft(const char *name, const ebb_model *host,
                                 const ebb_engine_opts *opts, bool may_go, ebb_model **out,
                            ebb_buf *why, ebb_error *err);
/* The smallest model found here that has the vocabulary of `host` and fewer bytes, and of which the
 * plan expects a gain.  *out NULL: there is none, and *why says so.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_models_best_draft(const ebb_model *host, const ebb_engine_opts *opts,
                                 const ebb_machine *machine, ebb_model **out,
                                 ebb_buf *why, ebb_error *err);

/* -- A better file of the same network (models_quality.c) --------------------------------- */

typedef struct ebb_better_model {
    char    *path;               /* for free() */
    char     quantization[16];
    uint64_t n_bytes;            /* of its weights */
    uint8_t  fingerprint[16];
    ebb_plan plan;               /* with opts */
    double   first_token_s;      /* to open it and read the conversation, nothing of it known */
} ebb_better_model;
/* The file that `name` means (NULL: the largest found here that fits), if it has the layers, the
 * vocabulary and the template of `everyday` and at least a fifth more bits for each weight (f16 at
 * most); planned with opts (NULL: not planned) on this machine, with freed_bytes more, for a
 * conversation of n_tokens.  Errors:
 * NOTFOUND, USAGE (it is not such a file), BUDGET, NOMEM, IO, UNSUPPORTED.  Cost: reads the headers
 * of larger files, and measures what the machine is not known by, up to half a second. */
EBB_MUST_CHECK
ebb_status ebb_models_find_better(const char *name, const ebb_model *everyday,
                                  const ebb_engine_opts *opts, uint64_t freed_bytes,
                                  uint32_t n_tokens, ebb_better_model *out, ebb_error *err);

/* What the user chose, for the next time; NULL: nothing, choose anew.  Errors: IO, NOTFOUND,
 * NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_models_remember(const char *path, ebb_error *err);
/* Its absolute path; false: nothing was chosen. */
bool ebb_models_remembered(ebb_buf *out);

#endif
