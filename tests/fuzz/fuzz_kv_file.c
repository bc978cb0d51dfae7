/* A file of the KV cache that somebody else wrote: it is refused, or it is what was asked for. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "folder.h"
#include "kernels/kernels.h"
#include "kv/kv_file.h"

enum { N_DATA = 256 };

static const uint8_t key[EBB_KV_KEY_BYTES] = "of the folder";

/* The file as ebb writes it, with the fuzzer's bytes laid over it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ebb_token ids[EBB_KV_BLOCK] = { 1, 2, 3 };
    char good[N_DATA], read[N_DATA], path[4096];
    ebb_kv_file item = { .hash = { 7 }, .shape = { 9 }, .pos = 32, .ids = ids, .n_ids = EBB_KV_BLOCK, .data = good,
                         .n_data = N_DATA };
    ebb_error err = { 0 };
    uint32_t n_ids;
    FILE *f;

    if (n < 4)
        return 0;
    item.kind = (ebb_kv_file_kind)(data[0] % EBB_KV_FILE_KINDS);
    item.n_ids = item.kind == EBB_KV_FILE_BLOCK || item.kind == EBB_KV_FILE_WINDOW ? EBB_KV_BLOCK
                                                                                   : 1 + data[1] % EBB_KV_BLOCK;
    for (int i = 0; i < N_DATA; i++)
        good[i] = (char)i;
    FUZZ_MUST(ebb_kv_file_write(fuzz_folder(), &item, key, &err) == EBB_OK);
    ebb_kv_file_path(fuzz_folder(), &item, path, sizeof path);
    f = fopen(path, data[2] % 4 ? "r+" : "w");
    FUZZ_MUST(f);
    fseek(f, data[3], SEEK_SET);
    fwrite(data + 4, 1, n - 4, f);
    fclose(f);
    ebb_kv_file_has(fuzz_folder(), &item, &n_ids, &err);
    memset(read, 0, sizeof read);
    item.data = read;
    err = (ebb_error){ 0 };
    if (ebb_kv_file_read(fuzz_folder(), &item, key, &err) == EBB_OK)
        FUZZ_MUST(memcmp(read, good, N_DATA) == 0);
    else
        FUZZ_MUST(err.msg[0]);
    return 0;
}
