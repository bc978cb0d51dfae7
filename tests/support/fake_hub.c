#include "support/fake_hub.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/own_folder.h"

bool test_hub_start(test_hub *h)
{
    return test_hub_start_script(h, "tests/support/hub.py");
}

bool test_hub_start_script(test_hub *h, const char *script)
{
    char path[96];
    int port = 0;

    if (system("command -v python3 >/dev/null") != 0 ||
        ebb_own_folder(h->dir, sizeof h->dir, "/tmp/ebb-hub-XXXXXX") != 0)
        return false;
    h->pid = fork();
    if (h->pid == 0) {
        execlp("python3", "python3", script, h->dir, (char *)NULL);
        _exit(127);
    }
    snprintf(path, sizeof path, "%s/port", h->dir);
    for (int i = 0; i < 6000 && port == 0 && waitpid(h->pid, NULL, WNOHANG) == 0; i++) {
        FILE *f = fopen(path, "r");

        if (f && fscanf(f, "%d", &port) != 1)
            port = 0;
        if (f)
            fclose(f);
        nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    }
    snprintf(h->url, sizeof h->url, "http://127.0.0.1:%d", port);
    return port > 0;
}

void test_hub_stop(test_hub *h)
{
    kill(h->pid, SIGTERM);
    waitpid(h->pid, NULL, 0);
    if (ebb_own_folder_end(h->dir) != 0)
        perror(h->dir);
}

void test_hub_how(const test_hub *h, const char *words)
{
    char path[96];
    FILE *f;

    snprintf(path, sizeof path, "%s/how", h->dir);
    f = fopen(path, "w");
    if (f) {
        fputs(words, f);
        fclose(f);
    }
}

void test_hub_last_post(const test_hub *h, char *out, size_t cap)
{
    char path[128], line[8192];
    FILE *f;

    snprintf(path, sizeof path, "%s/log", h->dir);
    f = fopen(path, "r");
    *out = '\0';
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, "\"method\": \"POST\""))
            snprintf(out, cap, "%s", line);
    if (f)
        fclose(f);
}

size_t test_hub_n_requests(const test_hub *h)
{
    char path[128];
    size_t n = 0;
    FILE *f;

    snprintf(path, sizeof path, "%s/log", h->dir);
    f = fopen(path, "r");
    for (int c; f && (c = getc(f)) != EOF;)
        n += c == '\n';
    if (f)
        fclose(f);
    return n;
}
