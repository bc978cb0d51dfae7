/* Sizes and names of the GGUF element types (ebb/experimental/type.h). */
#include "ebb/experimental/type.h"

#include <stddef.h>
#include <strings.h>

static const ebb_type_info types[EBB_TYPE_LIMIT] = {
#define X(name, id, len, bytes) [id] = { #name, len, bytes },
    EBB_TYPE_MAP(X)
#undef X
};

const ebb_type_info *ebb_type_get(uint32_t id)
{
    static const ebb_type_info unknown = { NULL, 1, 0 };

    return id < EBB_TYPE_LIMIT ? &types[id] : &unknown;
}

bool ebb_type_parse(const char *name, ebb_type *out)
{
    for (uint32_t id = 0; id < EBB_TYPE_LIMIT; id++)
        if (types[id].name && strcasecmp(types[id].name, name) == 0) {
            *out = (ebb_type)id;
            return true;
        }
    return false;
}

uint64_t ebb_type_row_bytes(ebb_type type, uint64_t n)
{
    const ebb_type_info *t = ebb_type_get(type);

    return t->name && n % t->block_len == 0 ? n / t->block_len * t->block_bytes : 0;
}
