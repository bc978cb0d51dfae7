/* A chat template, rendered within limits. */
#include "fuzz.h"

#include <jansson.h>

#include "template/template.h"

static const char context_text[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"Be \\u00e9 brief.\"},{\"role\":\"user\",\"content\":\" Hello "
    "<|im_end|> \"},"
    "{\"role\":\"assistant\",\"content\":\"<think>x</think>Hi\"},"
    "{\"role\":\"user\",\"content\":\"Bye\",\"n\":[1,2.5,null,true,{}]}],"
    "\"bos_token\":\"<s>\",\"eos_token\":\"</s>\",\"tools\":null,\"x\":-7}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static json_t *context;
    struct tm now = { .tm_year = 124, .tm_mday = 1 };
    ebb_template_opts o = { .attribute = n % 2, .now = &now, .max_steps = 20000, .max_memory_bytes = 8 << 20,
                            .max_output_bytes = 1 << 18 };
    ebb_template_result r = { 0 };
    ebb_error err = { 0 };
    ebb_template *t = NULL;
    ebb_status st;

    if (!context)
        context = json_loads(context_text, 0, NULL);
    if (ebb_template_compile((const char *)data, n, &t, &err) != EBB_OK) {
        FUZZ_MUST(!t && err.msg[0]);
        return 0;
    }
    st = ebb_template_render(t, context, &o, &r, &err);
    FUZZ_MUST(st == EBB_OK || err.msg[0]);
    for (size_t i = 0, end = 0; st == EBB_OK && i < r.n_ranges; end = r.ranges[i++].end)
        FUZZ_MUST(r.ranges[i].begin >= end && r.ranges[i].begin < r.ranges[i].end && r.ranges[i].end <= r.text.len &&
                  r.ranges[i].message < 4);
    ebb_template_result_fini(&r);
    ebb_template_free(t);
    return 0;
}
