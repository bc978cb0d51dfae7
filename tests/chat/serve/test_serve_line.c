/* Who is admitted before whom: clients in turns, and nobody is kept waiting for ever. */
#include "ebb_test.h"

#include <stdlib.h>
#include <string.h>

#include "serve/serve_priv.h"

static ebb_served_reader reader = { .fd = -1 };  /* of every answer; nobody notifies it */

static ebb_serve *open_line(void)
{
    ebb_serve *s = ebb_serve_new(&(ebb_serve_opts){ .leave_s = 0 });

    assert_non_null(s);
    s->is_ready = true;
    s->n_ctx = 64;
    return s;
}

/* An answer of each of the clients that the letters are. */
static void ask(ebb_serve *s, const char *clients)
{
    for (; *clients; clients++) {
        ebb_serve_question q = { .ids = calloc(1, sizeof *q.ids), .n_ids = 1, .client = (uint64_t)*clients };
        ebb_served *a;
        ebb_error err = { 0 };

        assert_int_equal(ebb_serve_submit(s, &q, &reader, &a, &err), EBB_OK);
    }
}

/* The first n of the line, as if there were room for so many. */
static void admit(ebb_serve *s, ebb_served **out, size_t n)
{
    for (ebb_served *a = s->answers; a; a = a->next)
        a->is_paused = true;
    for (size_t i = 0; i < n; i++) {
        out[i] = ebb_serve_next_in_line(s, SERVE_SESSIONS, true);
        assert_non_null(out[i]);
        out[i]->is_paused = false;
    }
}

static void assert_admitted(ebb_serve *s, const char *clients)
{
    ebb_served *all[SERVE_SESSIONS];
    char got[SERVE_SESSIONS + 1] = "";

    admit(s, all, strlen(clients));
    for (size_t i = 0; clients[i]; i++)
        got[i] = (char)all[i]->q.client;
    assert_string_equal(got, clients);
}

/* Ends the one of those that are admitted. */
static void end(ebb_serve *s, size_t which)
{
    ebb_served *all[SERVE_SESSIONS];

    admit(s, all, which + 1);
    all[which]->state = SERVED_ENDED;
    ebb_serve_leave_line(s, all[which]);
}

/* Where there is room for one, two clients go by turns, whoever has more waiting and came first. */
static void test_clients_take_turns(void **state)
{
    ebb_serve *s = open_line();

    (void)state;
    ask(s, "aaaaabbb");
    for (const char *left = "abababaa"; *left; left++) {
        assert_admitted(s, (char[]){ *left, '\0' });
        end(s, 0);
    }
    ebb_serve_free(s);
}

/* Who has ever more waiting keeps nobody out for longer than the one of his that goes on. */
static void test_who_asks_again_and_again(void **state)
{
    ebb_serve *s = open_line();

    (void)state;
    ask(s, "aaa");
    for (size_t i = 0; i < 8; i++) {
        ask(s, "b");
        end(s, 0);
        ask(s, "a");
        assert_admitted(s, "baaa");
        end(s, 0);
    }
    ebb_serve_free(s);
}

/* Where there is room for two, another's first goes before a second one that came earlier. */
static void test_second_ones_make_room(void **state)
{
    ebb_serve *s = open_line();

    (void)state;
    ask(s, "aaa");
    assert_admitted(s, "aa");
    ask(s, "b");
    assert_admitted(s, "aba");
    ebb_serve_free(s);
}

/* While the first of a client goes on, his second one waits for those that are there, not for those that come. */
static void test_new_clients_keep_no_second_waiting(void **state)
{
    ebb_serve *s = open_line();

    (void)state;
    ask(s, "abcda");
    for (const char *c = "efg"; *c; c++)
        ask(s, (char[]){ *c, '\0' });
    assert_admitted(s, "abcdeafg");
    for (const char *c = "hijkl"; *c; c++) {
        ask(s, (char[]){ *c, '\0' });
        end(s, 1);
    }
    assert_admitted(s, "afghijkl");              /* its second one has ended */
    ebb_serve_free(s);
}

/* Of one client so many are admitted, and without a free session only those that have one. */
static void test_limits(void **state)
{
    ebb_serve *s = open_line();

    (void)state;
    ask(s, "aaa");
    admit(s, (ebb_served *[2]){ NULL }, 2);
    assert_null(ebb_serve_next_in_line(s, 2, true));
    assert_non_null(ebb_serve_next_in_line(s, 3, true));
    assert_null(ebb_serve_next_in_line(s, 3, false));
    ebb_serve_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_clients_take_turns),
                                        cmocka_unit_test(test_who_asks_again_and_again),
                                        cmocka_unit_test(test_second_ones_make_room),
                                        cmocka_unit_test(test_new_clients_keep_no_second_waiting),
                                        cmocka_unit_test(test_limits) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
