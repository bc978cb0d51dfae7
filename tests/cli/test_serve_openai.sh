#!/bin/sh
# The openai package of npm as a client of ebb serve: models, an answer whole and streamed, usage, an error, an abort.  Its texts are those of
# ebb run.  Found by node or in $NODE_PATH.
command -v node >/dev/null || { echo "node is not there"; exit 77; }
node -e 'require("openai")' 2>/dev/null || { echo "the package openai not found (npm install openai, NODE_PATH=.../node_modules)"; exit 77; }
ldconfig -p 2>/dev/null | grep -q libmicrohttpd.so.12 || [ -e /usr/lib/"$(uname -m)"-linux-gnu/libmicrohttpd.so.12 ] || { echo "libmicrohttpd is not there"; exit 77; }
dir=$(mktemp -d /tmp/ebb-openai-XXXXXX) || exit 1
pid=
trap '[ "$pid" ] && kill $pid 2>/dev/null; rm -rf "$dir"' EXIT
fail() { echo "$1"; exit 1; }
export XDG_CONFIG_HOME="$dir/config" XDG_STATE_HOME="$dir/state" XDG_CACHE_HOME="$dir/cache" XDG_DATA_HOME="$dir/data" XDG_RUNTIME_DIR="$dir/run" LC_ALL=C.UTF-8
unset EBB_MODELS http_proxy HTTP_PROXY ALL_PROXY all_proxy OPENAI_API_KEY OPENAI_BASE_URL
question='What is a token?'
greedy=$("$EBB" run -m guide --greedy -n 40 -p "$question" </dev/null)
seeded=$("$EBB" run -m guide --seed 77 --temp 1.3 -n 40 -p "$question" </dev/null)
(umask 077; echo sk-0123456789abcdef >"$dir/key")
"$EBB" serve -m guide --port 0 --key-file "$dir/key" 2>"$dir/log" & pid=$!
n=600; until grep -q "answers, with" "$dir/log"; do n=$((n - 1)); [ $n -gt 0 ] || fail "the server does not start: $(cat "$dir/log")"; sleep 0.1; done
cat >"$dir/client.js" <<'J'
const { OpenAI } = require("openai");
const assert = require("assert");
const [url, question, greedy, seeded] = process.argv.slice(2);
const client = new OpenAI({ baseURL: url + "/v1", apiKey: "sk-0123456789abcdef", maxRetries: 0 });
const messages = [{ role: "user", content: question }];
const trimmed = (text) => text.replace(/\n+$/, "");
const metric = async (name) => {
    const text = await (await fetch(url + "/metrics", { headers: { Authorization: "Bearer sk-0123456789abcdef" } })).text();
    return Number(text.match(new RegExp("^ebb_" + name + " (.*)$", "m"))[1]);
};

(async () => {
    const models = (await client.models.list()).data;
    assert.deepEqual(models.map((m) => m.id), ["guide"]);
    const whole = await client.chat.completions.create({ model: "guide", messages, temperature: 0, max_tokens: 40 });
    assert.equal(trimmed(whole.choices[0].message.content), greedy);
    assert.equal(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens);
    const other = await client.chat.completions.create({ model: "guide", messages, temperature: 1.3, seed: 77, max_completion_tokens: 40 });
    assert.equal(trimmed(other.choices[0].message.content), seeded);

    let text = "", finish = null, usage = null;
    for await (const c of await client.chat.completions.create({ model: "guide", messages, temperature: 0, max_tokens: 40, stream: true, stream_options: { include_usage: true } })) {
        text += c.choices[0]?.delta?.content ?? "";
        finish = c.choices[0]?.finish_reason ?? finish;
        usage = c.usage ?? usage;
    }
    assert.equal(trimmed(text), greedy);
    assert.equal(finish, whole.choices[0].finish_reason);
    assert.deepEqual([usage.prompt_tokens, usage.completion_tokens], [whole.usage.prompt_tokens, whole.usage.completion_tokens]);

    await assert.rejects(client.chat.completions.create({ model: "guide", messages: [] }), (e) => e.status === 400 && e.message.length > 10);
    await assert.rejects(new OpenAI({ baseURL: url + "/v1", apiKey: "sk-wrong-key-0", maxRetries: 0 }).models.list(), (e) => e.status === 401);

    const before = await metric("answers_cancelled_total");
    const stream = await client.chat.completions.create({ model: "guide", messages, temperature: 1.5, seed: 5, stream: true, ignore_eos: true });
    for await (const c of stream)
        if (c.choices[0]?.delta?.content)
            break;                                   // leaving the loop closes the connection
    stream.controller.abort();
    for (let i = 0; await metric("answers_cancelled_total") === before; i++) {
        assert(i < 600, "the answer goes on");
        await new Promise((done) => setTimeout(done, 50));
    }
    assert.equal(await metric("answers_running"), 0);
})().catch((e) => { console.error(e); process.exit(1); });
J
node "$dir/client.js" "$(sed -n 's/^listening at //p' "$dir/log")" "$question" "$greedy" "$seeded" || fail "the client fails"
grep -rq 0123456789abcdef "$dir/log" "$dir/state" "$dir/cache" 2>/dev/null && fail "the key is told"
exit 0
