/* Stands in for libFuzzer where a fuzzer is built without it: every file named, or in a folder named, is given to the
 * fuzzer once.  `make test` does that with tests/fuzz/seeds, so that what once failed, and each branch that was ever
 * reached, is tried with every change and under every sanitizer. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static int n_given;

static void give_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    long n;
    uint8_t *data;

    if (!f || fseek(f, 0, SEEK_END) != 0 || (n = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) != 0) {
        perror(path);
        exit(1);
    }
    data = malloc((size_t)n + !n);               /* of its very size: a byte too far is seen */
    if (!data || fread(data, 1, (size_t)n, f) != (size_t)n) {
        perror(path);
        exit(1);
    }
    fclose(f);
    fprintf(stderr, "%s\n", path);               /* the last line names what it ended with */
    (void)LLVMFuzzerTestOneInput(data, (size_t)n);
    free(data);
    n_given++;
}

static void give(const char *path)
{
    struct stat st;
    struct dirent *e;
    DIR *dir;
    char sub[4096];

    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        give_file(path);
        return;
    }
    dir = opendir(path);
    while (dir && (e = readdir(dir)) != NULL) {
        snprintf(sub, sizeof sub, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.')
            give_file(sub);
    }
    if (dir)
        closedir(dir);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        give(argv[i]);
    printf("%d inputs\n", n_given);
    return n_given ? 0 : 1;
}
