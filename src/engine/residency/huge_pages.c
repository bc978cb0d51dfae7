/* What homes that share huge pages will still take of memory (huge_pages.h). */
#include "residency/huge_pages.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool ebb_huge_pages_init(ebb_huge_pages *h, const char *from, uint64_t n_bytes)
{
    *h = (ebb_huge_pages){ .from = from, .n_bytes = n_bytes };
    h->n = (uint32_t)((n_bytes + EBB_HUGE_PAGE_BYTES - 1) / EBB_HUGE_PAGE_BYTES);
    h->has_memory = calloc(h->n, sizeof *h->has_memory);
    h->n_expected = calloc(h->n, sizeof *h->n_expected);
    if (h->has_memory && h->n_expected)
        return true;
    ebb_huge_pages_fini(h);
    return false;
}

void ebb_huge_pages_fini(ebb_huge_pages *h)
{
    free(h->has_memory);
    free(h->n_expected);
    memset(h, 0, sizeof *h);
}

bool ebb_huge_pages_hold(const ebb_huge_pages *h, const char *at)
{
    return h->from && at >= h->from && at < h->from + h->n_bytes;
}

static uint32_t page_of(const ebb_huge_pages *h, const char *at)
{
    return (uint32_t)((uint64_t)(at - h->from) / EBB_HUGE_PAGE_BYTES);
}

static uint64_t bytes_of_page(const ebb_huge_pages *h, uint32_t i)
{
    return i + 1 < h->n ? EBB_HUGE_PAGE_BYTES : h->n_bytes - i * EBB_HUGE_PAGE_BYTES;
}

static bool is_pending(const ebb_huge_pages *h, uint32_t i)
{
    return h->n_expected[i] > 0 && !h->has_memory[i];
}

void ebb_huge_pages_expect(ebb_huge_pages *h, const char *at, uint64_t n)
{
    for (uint32_t i = page_of(h, at); i <= page_of(h, at + n - 1); i++) {
        h->n_expected[i]++;
        h->pending_bytes += is_pending(h, i) && h->n_expected[i] == 1 ? bytes_of_page(h, i) : 0;
    }
}

void ebb_huge_pages_expect_no_more(ebb_huge_pages *h, const char *at, uint64_t n)
{
    for (uint32_t i = page_of(h, at); i <= page_of(h, at + n - 1); i++) {
        assert(h->n_expected[i] > 0);
        h->pending_bytes -= is_pending(h, i) && h->n_expected[i] == 1 ? bytes_of_page(h, i) : 0;
        h->n_expected[i]--;
    }
}

void ebb_huge_pages_write(ebb_huge_pages *h, const char *at, uint64_t n)
{
    for (uint32_t i = page_of(h, at); i <= page_of(h, at + n - 1); i++) {
        h->pending_bytes -= is_pending(h, i) ? bytes_of_page(h, i) : 0;
        h->has_memory[i] = true;
    }
}

void ebb_huge_pages_give_back(ebb_huge_pages *h, const char *at, uint64_t n)
{
    for (uint32_t i = page_of(h, at); i <= page_of(h, at + n - 1); i++) {
        const char *page = h->from + i * EBB_HUGE_PAGE_BYTES;

        if (!h->has_memory[i] || page < at || page + bytes_of_page(h, i) > at + n)
            continue;
        h->has_memory[i] = false;
        h->pending_bytes += is_pending(h, i) ? bytes_of_page(h, i) : 0;
    }
}

bool ebb_huge_pages_check(const ebb_huge_pages *h)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < h->n; i++)
        sum += is_pending(h, i) ? bytes_of_page(h, i) : 0;
    return sum == h->pending_bytes;
}
