/* speculate/draft_length.h - how many draft tokens a pass shall have.
 *
 * A pass over 1 + k tokens takes t + k c seconds, a draft token takes the drafter d.  With an
 * acceptance rate a for each draft token whose predecessors were accepted, a pass yields
 *
 *     E(k) = 1 + a + ... + a^k      tokens in      t + k (c + d)      seconds
 *
 * (Leviathan et al. 2023, eq. 1).  Drafting pays if E(k) / (t + k (c + d)) > 1 / t for some k; the
 * best such rate is r.  While tokens are drafted more is known than a: the probability that the
 * drafter itself gives each, and how often draft tokens of that probability were accepted so far.
 * A further one is worth its time as long as the chance that it and all before it are accepted is
 * more than what that time yields elsewhere, r (c + d).  A branch costs c alone, and its chance is
 * that of the rejection before it, times how often the choice of its rank is sampled then.
 *
 * t, c, d and the rates are measured means, the newest values weighing most.  They only promise, so
 * what drafting brought is counted, too: where it has lost most of a pass, or anything in eight
 * rounds, it pauses, twice as long each time, and is tried with a few tokens then, at half the risk
 * each time.  Neither knows of the memory that a drafter takes, from layers that are streamed
 * instead: whether it is worth that is asked where drafting has lost twice in a row, or much is
 * known.  Until then such a drafter does not pause: each pass without those layers costs, too.
 * A try is one token, or as many as cost a quarter of a pass where a pass waits for a
 * disk: there single ones would waste passes. */
#ifndef EBB_DRAFT_LENGTH_H
#define EBB_DRAFT_LENGTH_H
#include <stdbool.h>
#include <stdint.h>

#define EBB_DRAFT_LENGTH_BINS 10u
#define EBB_DRAFT_RANKS        3u        /* choices that are known of a place: the draft token and
                                            the next best (draft_tree.h) */
/* Acceptance rates that are assumed before any was measured: of another model of the family, and of
 * the same model in fewer bits. */
#define EBB_ACCEPT_RATE_FAMILY 0.7
#define EBB_ACCEPT_RATE_SAME   0.9

typedef struct ebb_draft_length {
    uint32_t n_fixed;            /* draft so many, whatever it costs; 0: as many as pay */
    uint32_t n_fixed_branches;   /* then so many branches */
    bool     takes_layers;       /* layers are streamed for its memory */
    double   token_share, draft_share;   /* c / t and d / t, until they are measured */
    double   alone_s, token_s, draft_s;  /* t, c, d; t is 0 before the first pass */
    double   catch_s;            /* seconds that the drafter takes for a token of the sequence that
                                    it has not computed yet */
    double   accepted, proposed; /* draft tokens, discounted by age ... */
    /* ... and by the drafter's own probability */
    double   bin_accepted[EBB_DRAFT_LENGTH_BINS], bin_proposed[EBB_DRAFT_LENGTH_BINS];
    double   rejected;           /* draft tokens, discounted; of these, those in whose place the
                                    choice of a rank was sampled */
    double   rank_sampled[EBB_DRAFT_RANKS];
    uint32_t n_pause, pause;     /* passes left without a draft; length of the next pause */
    double   risk;               /* passes that it may lose before the next pause */
    uint32_t n_tries;            /* draft tokens left that show whether drafting pays */
    uint32_t n_lost;             /* times in a row that drafting lost what it may, without a draft
                                    that paid between them */
    uint32_t n_learned;          /* draft tokens whose fate is known */
    uint32_t n_rounds;
    uint32_t n_judged;           /* rounds in the sum below */
    double   gain_s;             /* seconds that drafting saved in them; < 0: lost */
} ebb_draft_length;

/* accept_rate: the one assumed; token_share and draft_share as predicted. */
void ebb_draft_length_init(ebb_draft_length *p, double accept_rate, double token_share,
                           double draft_share);

/* The k <= n_most with the best rate in tokens per second, 0 if drafting does not pay; *rate is
 * that of k, at least 1 / t. */
uint32_t ebb_draft_length_best(const ebb_draft_length *p, uint32_t n_most, double *rate);

/* How many draft tokens the next pass may have, at most n_most; 0: none. */
uint32_t ebb_draft_length_begin(ebb_draft_length *p, uint32_t n_most);
/* Whether it pays that the drafter computes n_behind tokens of the sequence that it lacks, for an
 * answer of usual length. */
bool ebb_draft_length_is_sync_worth(const ebb_draft_length *p, uint32_t n_behind);
/* Whether enough is known to say whether the drafter is worth the memory that it takes. */
bool ebb_draft_length_is_known(const ebb_draft_length *p);
/* Whether it is: `share` is what a pass of one token would take if other weights had that memory,
 * of t. */
bool ebb_draft_length_is_memory_worth(const ebb_draft_length *p, double share);
/* The chance that a draft token of this probability is accepted. */
double ebb_draft_length_accept_chance(const ebb_draft_length *p, double probability);
/* Whether a draft token that is accepted with this chance is worth its place in the pass; and
 * whether drafting another one behind it is. */
bool ebb_draft_length_is_token_worth(const ebb_draft_length *p, double chance);
bool ebb_draft_length_is_next_worth(const ebb_draft_length *p, double chance);

/* The chance that the choice of this rank >= 1 is sampled where the draft token is rejected. */
double ebb_draft_length_rank_chance(const ebb_draft_length *p, uint32_t rank);
/* Whether a branch that the sampler takes with this chance is worth a place in the pass, beside
 * n_branches that are. */
bool ebb_draft_length_is_branch_worth(const ebb_draft_length *p, double chance,
                                      uint32_t n_branches);

/* A pass over n_tokens took so many seconds. */
void ebb_draft_length_learn_pass(ebb_draft_length *p, uint32_t n_tokens, double seconds);
/* The drafter took so many seconds for one draft token, or (n_tokens > 2) for n_tokens of the
 * sequence that it lacked. */
void ebb_draft_length_learn_draft(ebb_draft_length *p, uint32_t n_tokens, double seconds);
/* A draft token of this probability, with all before it accepted, was accepted or rejected. */
void ebb_draft_length_learn_token(ebb_draft_length *p, double probability, bool is_accepted);
/* What became of the draft tokens of a pass. */
typedef struct ebb_draft_outcome {
    const double *probabilities; /* [n] of the trunk's tokens, by the drafter */
    uint32_t n, n_accepted;      /* tokens of the trunk: the first n_accepted were accepted; */
    bool     is_rejected;        /* the next one was rejected, else its outcome is unknown */
    uint32_t rank;               /* of the choice that was sampled in its place: 1 .. RANKS - 1; 0:
                                    of none */
    uint32_t n_columns, n_steps; /* tokens of the whole tree; steps that the drafter took for it */
    uint32_t n_gained;           /* accepted ones, of the trunk and of a branch */
} ebb_draft_outcome;
/* A pass with draft tokens is over.  `drafter` names who drafted them in the trace. */
void ebb_draft_length_learn(ebb_draft_length *p, const ebb_draft_outcome *o, const char *drafter);
/* A token was drafted, and found not worth its place in the pass. */
void ebb_draft_length_learn_waste(ebb_draft_length *p);

#endif
