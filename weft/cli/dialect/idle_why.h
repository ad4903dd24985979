// Why a flag does nothing, where several share a reason.
#pragma once

#include <string_view>

namespace weft::cli::dialect::why {

inline constexpr std::string_view
    saves = "only --save writes checkpoints",
    scores = "attention never stores its scores, nor do experts what they activate",
    again = "only --recompute-granularity full recomputes layers", loads = "only --load reads a checkpoint",
    anneals = "only --lr-decay-style WSD ends with such a part",
    events = "only --tensorboard-dir writes events", slopes = "only --position-embedding-type alibi reads it",
    distances = "only --position-embedding-type relative reads it",
    rotary = "only --position-embedding-type rope turns anything",
    stretched = "only --use-rope-scaling, yarn and longrope stretch angles",
    gates = "only --swiglu, --geglu and --quick-geglu gate an MLP",
    yarn = "only --position-embedding-type yarn reads it", llama3 = "only --use-rope-scaling reads it",
    moments = "sgd and Lion have no second moment",
    lion = "only Lion reads it: --optimizer lion, or --muon-scalar-optimizer lion",
    lamb = "only --optimizer lamb reads it",
    trusts = "only --optimizer lamb and onebitlamb have trust ratios",
    onebit_lamb = "only --optimizer onebitlamb reads it", zero_one = "only --optimizer zerooneadam reads it",
    offloads = "only --optimizer-cpu-offload puts states in files", muon = "only --optimizer muon reads it",
    passes = "only --token-drop-layers lets tokens pass layers by",
    cycles = "OneCycle's cycle_momentum says what the betas are",
    momentum = "only OneCycle's cycle_momentum moves the betas",
    hides = "only the samples of BERT and T5 hide words",
    widths = "only --use-mup follows the width of the model",
    grows = "only --curriculum-schedule lets samples grow longer",
    curves = "only --curriculum-schedule fixed_linear and fixed_root read it",
    climbs = "only --curriculum-schedule fixed_discrete reads it", cuts = "only --fim-data cuts documents",
    converses = "only --sft reads conversations", experts = "only --num-experts gives layers a router",
    peers = "only data-parallel and context-parallel ranks have gradients to add",
    stages = "only --pipeline-model-parallel-size cuts layers into stages", looks = "nothing is evaluated",
    reads = "only --tokenizer-type reads it", caches = "no index of samples is kept",
    heads =
        "--qk-head-dim, --qk-pos-emb-head-dim and --v-head-dim say how wide "
        "heads of latent attention are",
    remember = "only --experimental-attention-variant gives layers that remember",
    states = "only M in --hybrid-layer-pattern gives state spaces",
    rounds = "only --fp8-format rounds to eight bits",
    delayed = "only --fp8-recipe delayed remembers earlier steps",
    ends = "only --first-last-layers-bf16 leaves layers out",
    profiles = "only --profile shows steps to a profiler",
    parts = "only --window-size and --attention-chunk hide some of the text",
    scales = "only --fp16 without --loss-scale grows and halves a scale",
    clips = "only --qk-clip holds weights of queries and keys down", attends = "no layer attends";

}  // namespace weft::cli::dialect::why
