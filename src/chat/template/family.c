#include "template/family.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Pieces that several sources share. */
#define ALTERNATE \
    "{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}" \
    "{{ raise_exception('After a system message, user and assistant must take turns') }}" \
    "{%- endif -%}"
#define SPLIT_SYSTEM \
    "{%- set ns = namespace(system='') -%}" \
    "{%- set rest = messages -%}" \
    "{%- if messages and messages[0].role == 'system' -%}" \
    "{%- set ns.system = messages[0].content -%}" \
    "{%- set rest = messages[1:] -%}" \
    "{%- endif -%}"
#define INST(before, after, answer) \
    SPLIT_SYSTEM \
    "{{- bos_token -}}" \
    "{%- for m in rest -%}" ALTERNATE \
    "{%- if m.role == 'user' -%}" \
    "{{- '" before "' + (ns.system + '\\n\\n' if loop.first and ns.system else '') + m.content + '" after "' -}}" \
    "{%- else -%}" \
    "{{- '" answer "' + m.content + eos_token -}}" \
    "{%- endif -%}" \
    "{%- endfor -%}"
#define MARKED(open, close, end, ask) \
    "{%- for m in messages -%}" \
    "{{- '" open "' + m.role + '" close "' + m.content + '" end "' -}}" \
    "{%- endfor -%}" \
    "{%- if add_generation_prompt -%}{{- '" ask "' -}}{%- endif -%}"

static const ebb_template_family families[] = {
    { "chatml", MARKED("<|im_start|>", "\\n", "<|im_end|>\\n", "<|im_start|>assistant\\n") },
    { "llama3",
      "{{- bos_token -}}"
      MARKED("<|start_header_id|>", "<|end_header_id|>\\n\\n", "<|eot_id|>",
             "<|start_header_id|>assistant<|end_header_id|>\\n\\n") },
    { "llama4",
      "{{- bos_token -}}"
      MARKED("<|header_start|>", "<|header_end|>\\n\\n", "<|eot|>", "<|header_start|>assistant<|header_end|>\\n\\n") },
    { "llama2",
      SPLIT_SYSTEM
      "{%- for m in rest -%}" ALTERNATE
      "{%- if m.role == 'user' -%}"
      "{{- bos_token + '[INST] ' -}}"
      "{%- if loop.first and ns.system -%}{{- '<<SYS>>\\n' + ns.system + '\\n<</SYS>>\\n\\n' -}}{%- endif -%}"
      "{{- m.content + ' [/INST]' -}}"
      "{%- else -%}"
      "{{- ' ' + m.content + ' ' + eos_token -}}"
      "{%- endif -%}"
      "{%- endfor -%}" },
    { "mistral-v1", INST(" [INST] ", " [/INST]", " ") },
    { "mistral-v3", INST("[INST] ", "[/INST]", " ") },
    { "mistral-tekken", INST("[INST]", "[/INST]", "") },
    { "mistral-v7",
      "{{- bos_token -}}"
      "{%- for m in messages -%}"
      "{%- if m.role == 'system' -%}{{- '[SYSTEM_PROMPT]' + m.content + '[/SYSTEM_PROMPT]' -}}"
      "{%- elif m.role == 'user' -%}{{- '[INST]' + m.content + '[/INST]' -}}"
      "{%- else -%}{{- m.content + eos_token -}}{%- endif -%}"
      "{%- endfor -%}" },
    { "gemma",
      SPLIT_SYSTEM
      "{{- bos_token -}}"
      "{%- for m in rest -%}" ALTERNATE
      "{{- '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' -}}"
      "{%- if loop.first and ns.system -%}{{- ns.system + '\\n\\n' -}}{%- endif -%}"
      "{{- m.content | trim + '<end_of_turn>\\n' -}}"
      "{%- endfor -%}"
      "{%- if add_generation_prompt -%}{{- '<start_of_turn>model\\n' -}}{%- endif -%}" },
    { "gemma4",
      "{{- bos_token -}}"
      "{%- for m in messages -%}"
      "{{- '<|turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' -}}"
      "{{- (m.content.split('<channel|>')[-1] if m.role == 'assistant' else m.content) | trim + '<turn|>\\n' -}}"
      "{%- endfor -%}"
      "{%- if add_generation_prompt -%}{{- '<|turn>model\\n' -}}{%- endif -%}" },
    { "phi3", MARKED("<|", "|>\\n", "<|end|>\\n", "<|assistant|>\\n") },
    { "phi4", MARKED("<|im_start|>", "<|im_sep|>", "<|im_end|>", "<|im_start|>assistant<|im_sep|>") },
    { "zephyr",
      "{%- for m in messages -%}"
      "{{- '<|' + m.role + '|>\\n' + m.content + eos_token + '\\n' -}}"
      "{%- endfor -%}"
      "{%- if add_generation_prompt -%}{{- '<|assistant|>\\n' -}}{%- endif -%}" },
    { "glm4",
      "{{- '[gMASK]<sop>' -}}"
      MARKED("<|", "|>\\n", "", "<|assistant|>\\n") },
    { "granite",
      MARKED("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>\\n",
             "<|start_of_role|>assistant<|end_of_role|>") },
    { "gpt-oss",
      "{%- for m in messages -%}"
      "{%- if m.role == 'assistant' -%}{{- '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|end|>' -}}"
      "{%- else -%}{{- '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' -}}{%- endif -%}"
      "{%- endfor -%}"
      "{%- if add_generation_prompt -%}{{- '<|start|>assistant<|channel|>final<|message|>' -}}{%- endif -%}" },
    { "command-r",
      "{{- bos_token -}}"
      "{%- for m in messages -%}"
      "{{- '<|START_OF_TURN_TOKEN|>' -}}"
      "{{- {'system': '<|SYSTEM_TOKEN|>', 'user': '<|USER_TOKEN|>', 'assistant': '<|CHATBOT_TOKEN|>'}[m.role] -}}"
      "{{- m.content + '<|END_OF_TURN_TOKEN|>' -}}"
      "{%- endfor -%}"
      "{%- if add_generation_prompt -%}{{- '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' -}}{%- endif -%}" },
    { "deepseek",
      "{{- bos_token -}}"
      "{%- for m in messages -%}"
      "{%- if m.role == 'system' -%}{{- m.content + '\\n\\n' -}}"
      "{%- elif m.role == 'user' -%}{{- '<\xEF\xBD\x9CUser\xEF\xBD\x9C>' + m.content -}}"
      "{%- else -%}{{- '<\xEF\xBD\x9C" "Assistant\xEF\xBD\x9C>' + m.content.split('</think>')[-1] + eos_token "
                                       "-}}{%- endif -%}"
      "{%- endfor -%}"
      "{%- if add_generation_prompt -%}{{- '<\xEF\xBD\x9C" "Assistant\xEF\xBD\x9C>' -}}{%- endif -%}" },
    { "deepseek-coder",
      "{{- bos_token -}}"
      "{%- for m in messages -%}"
      "{%- if m.role == 'system' -%}{{- m.content + '\\n' -}}"
      "{%- elif m.role == 'user' -%}{{- '### Instruction:\\n' + m.content + '\\n' -}}"
      "{%- else -%}{{- '### Response:\\n' + m.content + '\\n<|EOT|>\\n' -}}{%- endif -%}"
      "{%- endfor -%}"
      "{%- if add_generation_prompt -%}{{- '### Response:\\n' -}}{%- endif -%}" },
    { "exaone",
      "{%- for m in messages -%}"
      "{{- '[|' + m.role + '|]' + m.content + ('\\n' if m.role == 'user' else '[|endofturn|]\\n') -}}"
      "{%- endfor -%}"
      "{%- if add_generation_prompt -%}{{- '[|assistant|]' -}}{%- endif -%}" },
    { "vicuna",
      "{{- bos_token -}}"
      "{%- for m in messages -%}"
      "{%- if m.role == 'system' -%}{{- m.content + '\\n\\n' -}}"
      "{%- elif m.role == 'user' -%}{{- 'USER: ' + m.content + '\\n' -}}"
      "{%- else -%}{{- 'ASSISTANT: ' + m.content + eos_token + '\\n' -}}{%- endif -%}"
      "{%- endfor -%}"
      "{%- if add_generation_prompt -%}{{- 'ASSISTANT:' -}}{%- endif -%}" },
    { "alpaca",
      "{{- bos_token -}}"
      "{%- for m in messages -%}"
      "{%- if m.role == 'system' -%}{{- m.content + '\\n\\n' -}}"
      "{%- elif m.role == 'user' -%}{{- '### Instruction:\\n' + m.content + '\\n\\n' -}}"
      "{%- else -%}{{- '### Response:\\n' + m.content + eos_token + '\\n\\n' -}}{%- endif -%}"
      "{%- endfor -%}"
      "{%- if add_generation_prompt -%}{{- '### Response:\\n' -}}{%- endif -%}" },
    { "plain",
      "{%- for m in messages -%}"
      "{{- m.content + ('' if loop.last else '\\n\\n') -}}"
      "{%- endfor -%}"
      "{%- if add_generation_prompt and messages and messages[-1].role == 'assistant' -%}{{- '\\n\\n' -}}{%- "
      "endif -%}" },
    { NULL, NULL },
};

/* A family's tokens: all of them must be in the vocabulary.  The first row that fits wins. */
static const struct { const char *family, *tokens[2]; } by_tokens[] = {
    { "phi4",           { "<|im_start|>", "<|im_sep|>" } },
    { "chatml",         { "<|im_start|>", "<|im_end|>" } },
    { "llama3",         { "<|start_header_id|>", "<|eot_id|>" } },
    { "llama4",         { "<|header_start|>", "<|eot|>" } },
    { "gpt-oss",        { "<|start|>", "<|channel|>" } },
    { "gemma",          { "<start_of_turn>", "<end_of_turn>" } },
    { "gemma4",         { "<|turn>", "<turn|>" } },
    { "command-r",      { "<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>" } },
    { "granite",        { "<|start_of_role|>", "<|end_of_role|>" } },
    { "deepseek",       { "<\xEF\xBD\x9CUser\xEF\xBD\x9C>", "<\xEF\xBD\x9C" "Assistant\xEF\xBD\x9C>" } },
    { "deepseek-coder", { "<|EOT|>", "<\xEF\xBD\x9C" "begin\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>" } },
    { "mistral-v7",     { "[SYSTEM_PROMPT]", "[INST]" } },
    { "exaone",         { "[|endofturn|]", "[|assistant|]" } },
    { "glm4",           { "[gMASK]", "<|assistant|>" } },
    { "phi3",           { "<|end|>", "<|assistant|>" } },
};

/* Part of the model's name, in lower case. */
static const struct { const char *part, *family; } by_name[] = {
    { "zephyr", "zephyr" }, { "tinyllama-1.1b-chat", "zephyr" }, { "vicuna", "vicuna" }, { "wizardlm", "vicuna" },
    { "alpaca", "alpaca" }, { "mixtral", "mistral-v1" }, { "mistral", "mistral-v1" },
    { "llama-2", "llama2" }, { "llama 2", "llama2" }, { "llama2", "llama2" }, { "codellama", "llama2" },
};

static const struct { const char *arch, *family; } by_arch[] = {
    { "qwen2", "chatml" }, { "qwen3", "chatml" }, { "qwen3moe", "chatml" }, { "gemma", "gemma" }, { "gemma2", "gemma" },
    { "gemma3", "gemma" }, { "gemma3n", "gemma" }, { "gemma4", "gemma4" }, { "phi3", "phi3" }, { "phimoe", "phi3" },
    { "command-r", "command-r" },
    { "granite", "granite" }, { "deepseek2", "deepseek" }, { "gpt-oss", "gpt-oss" },
};

const ebb_template_family *ebb_template_family_at(size_t i)
{
    return i < sizeof families / sizeof *families - 1 ? &families[i] : NULL;
}

const ebb_template_family *ebb_template_family_named(const char *name)
{
    for (const ebb_template_family *f = families; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

static bool has_token(const ebb_model *m, const char *text)
{
    return ebb_model_find_token(m, text) >= 0;
}

/* [INST] as a token: a vocabulary of bytes is Tekken's, the other one that of v3. */
static const char *mistral_of(const ebb_model *m)
{
    const char *vocab = ebb_model_meta_string(m, "tokenizer.ggml.model");

    return vocab && strcmp(vocab, "gpt2") == 0 ? "mistral-tekken" : "mistral-v3";
}

static bool name_has(const char *name, const char *part)
{
    size_t n = strlen(part);

    for (; *name; name++) {
        size_t i = 0;
        while (i < n && name[i] && tolower((unsigned char)name[i]) == part[i])
            i++;
        if (i == n)
            return true;
    }
    return false;
}

const ebb_template_family *ebb_template_family_choose(const ebb_model *m, char *why, size_t cap)
{
    const ebb_model_info *info = ebb_model_get_info(m);

    for (size_t i = 0; i < sizeof by_tokens / sizeof *by_tokens; i++) {
        if (!has_token(m, by_tokens[i].tokens[0]) || !has_token(m, by_tokens[i].tokens[1]))
            continue;
        snprintf(why, cap, "its token %s", by_tokens[i].tokens[0]);
        return ebb_template_family_named(by_tokens[i].family);
    }
    if (has_token(m, "[INST]") && has_token(m, "[/INST]")) {
        snprintf(why, cap, "its token [INST]");
        return ebb_template_family_named(mistral_of(m));
    }
    for (size_t i = 0; i < sizeof by_name / sizeof *by_name; i++)
        if (name_has(info->name, by_name[i].part)) {
            snprintf(why, cap, "'%s' in its name", by_name[i].part);
            return ebb_template_family_named(by_name[i].family);
        }
    for (size_t i = 0; i < sizeof by_arch / sizeof *by_arch; i++)
        if (strcmp(info->arch, by_arch[i].arch) == 0) {
            snprintf(why, cap, "its architecture %s", info->arch);
            return ebb_template_family_named(by_arch[i].family);
        }
    snprintf(why, cap, "default, as there is no sign of a chat format");
    return ebb_template_family_named("plain");
}
