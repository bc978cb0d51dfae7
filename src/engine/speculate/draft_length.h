/* speculate/draft_length.h - how many tokens a draft model shall draft for a pass.
 *
 * A pass of 1 + k columns takes t + k c seconds, a guess of the draft model d.  If a share a of its
 * guesses is right, each of them only if all before it were, a pass brings
 *
 *     E(k) = 1 + a + ... + a^k      tokens in      t + k (c + d)      seconds.
 *
 * Drafting pays if E(k) / (t + k (c + d)) > 1 / t for some k; the best such rate is r.  While
 * guesses are being made more is known than a: the probability that the draft model itself gives
 * each of them, and how often guesses of that probability were right until now.  The next one is
 * worth its time as long as the chance that it counts is more than what that time brings elsewhere,
 * r (c + d).
 *
 * t, c, d and the shares are means of what was measured, the newest counting most.  Where drafting
 * has not paid it rests, twice as long each time, and is tried with a few short guesses then. */
#ifndef EBB_DRAFT_LENGTH_H
#define EBB_DRAFT_LENGTH_H
#include <stdbool.h>
#include <stdint.h>

#define EBB_DRAFT_LENGTH_BINS 10u
#define EBB_ACCEPT_RATE_FAMILY 0.7 /* share of right guesses that is assumed of another model of the
                                      family ... */
#define EBB_ACCEPT_RATE_SAME 0.9 /* ... and of the same one in fewer bits */

typedef struct ebb_draft_length {
    uint32_t n_fixed;            /* guess so many, whatever it costs; 0: as many as pay */
    double   token_share, draft_share;   /* c / t and d / t, until they were measured */
    double   alone_s, token_s, draft_s;  /* t, c, d; t is 0 before the first pass */
    double   catch_s;            /* of the draft model, for each token of a text that it has not
                                    seen */
    double   accepted, proposed; /* of all guesses, the older the less ... */
    /* ... by the draft's own probability */
    double   bin_accepted[EBB_DRAFT_LENGTH_BINS], bin_proposed[EBB_DRAFT_LENGTH_BINS];
    uint32_t n_pause, pause;     /* passes still to be made without guesses; of the next rest */
    uint32_t n_tries;            /* short guesses left to find out whether it pays */
    uint32_t n_rounds;
} ebb_draft_length;

/* right: the share assumed; token_share and draft_share as predicted. */
void ebb_draft_length_init(ebb_draft_length *p, double accept_rate, double token_share,
                           double draft_share);

/* The k <= n_most with the best rate, 0 if drafting does not pay; *rate is that of k, at least 1 /
 * t. */
uint32_t ebb_draft_length_best(const ebb_draft_length *p, uint32_t n_most, double *rate);

/* How many guesses the next pass may have, at most n_most; 0: this one goes without. */
uint32_t ebb_draft_length_begin(ebb_draft_length *p, uint32_t n_most);
/* Whether n_behind tokens that the draft model has not seen are worth computing, for an answer of
 * usual length. */
bool ebb_draft_length_is_sync_worth(const ebb_draft_length *p, uint32_t n_behind);
/* The chance that a guess of this probability is right. */
double ebb_draft_length_accept_chance(const ebb_draft_length *p, double probability);
/* Whether a guess that counts with this chance is worth its column; and, behind it, another
 * guess. */
bool ebb_draft_length_is_token_worth(const ebb_draft_length *p, double chance);
bool ebb_draft_length_is_next_worth(const ebb_draft_length *p, double chance);

/* A pass of n columns took so long; the draft model a guess, n > 2 columns of text. */
void ebb_draft_length_learn_pass(ebb_draft_length *p, uint32_t n_tokens, double seconds);
void ebb_draft_length_learn_draft(ebb_draft_length *p, uint32_t n_tokens, double seconds);
/* A guess of this probability, all before it being right, was right or not. */
void ebb_draft_length_learn_token(ebb_draft_length *p, double probability, bool is_accepted);
/* A pass had guesses, and what they were is known. */
void ebb_draft_length_end(ebb_draft_length *p);

#endif
