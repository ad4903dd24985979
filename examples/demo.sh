#!/usr/bin/env bash
# The demo: from text at hand to a small GPT that writes something like it, on two tensor-parallel ranks, in about
# a minute. Everything it makes lies in build/demo. Usage: examples/demo.sh [WEFT]; STEPS= and MINUTES= train for longer.
set -euo pipefail
cd "$(dirname "$0")/.."
weft=${1:-build/release/weft}
out=build/demo
rm -rf "$out"
mkdir -p "$out"

say() { printf '\n== %s\n' "$*"; }

# A line of JSON a file: {"text": "..."}.
as_json() {
  printf '{"text": "'
  sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/\t/\\t/g' -e 's/$/\\n/' "$1" | tr -d '\000-\037'
  printf '"}\n'
}

say "1. collect text: this project's own documentation and sources"
find README.md CONTRIBUTING.md docs weft tests \( -name '*.md' -o -name '*.h' -o -name '*.cpp' \) | sort |
  while read -r file; do as_json "$file"; done >"$out/text.jsonl"
wc -c "$out/text.jsonl"

say "2. learn a vocabulary of 2048 words from it"
"$weft" tokenizer train --vocab-size 2048 --output "$out/tokenizer" "$out/text.jsonl"

say "3. turn the text into token files"
tokenizer=(--tokenizer-type GPT2BPETokenizer --vocab-file "$out/tokenizer/vocab.json" --merge-file "$out/tokenizer/merges.txt")
"$weft" preprocess --input "$out/text.jsonl" --output-prefix "$out/text" "${tokenizer[@]}" --append-eod --workers 2

say "4. train a GPT of 3 million parameters on two ranks that cut every layer between them"
"$weft" train gpt --data-path "$out/text_text_document" "${tokenizer[@]}" --split 98,2,0 \
  --num-layers 6 --hidden-size 192 --num-attention-heads 6 --seq-length 128 --max-position-embeddings 128 \
  --hidden-dropout 0 --attention-dropout 0 \
  --tensor-model-parallel-size 2 --sequence-parallel \
  --micro-batch-size 8 --global-batch-size 8 --train-iters "${STEPS:-240}" \
  --lr 3e-3 --min-lr 1e-4 --lr-decay-style cosine --lr-warmup-iters 40 --weight-decay 0.1 --adam-beta2 0.95 --clip-grad 1.0 \
  --log-interval 10 --eval-interval 120 --eval-iters 4 --log-jsonl "$out/run.jsonl" \
  --exit-duration-in-mins "${MINUTES:-1}" \
  --sample-prompt "// The " --sample-tokens 160 >"$out/sample.txt" || [ $? -eq 3 ] # 3: the minute was over

say "5. the loss curve"
"$weft" plot "$out/run.jsonl"
"$weft" plot "$out/run.jsonl" --svg "$out/loss.svg"

say "6. what it writes"
cat "$out/sample.txt"
