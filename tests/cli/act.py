#!/usr/bin/env python3
"""Every honored flag acts: act.py --weft WEFT. For each there are two values after which a tiny run differs in what it computes, says, writes
or holds, or the reason why none can; and one that does nothing without another says so. A flag that changes nothing fails, and so does a new
one without a pair here."""
import argparse, base64, functools, json, pathlib, re, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden"
TEXT, DATA = GOLDEN / "text", GOLDEN / "data"
BASE = {"num-layers": "2", "hidden-size": "32", "num-attention-heads": "4", "seq-length": "16", "micro-batch-size": "2",
        "global-batch-size": "4", "lr": "0.01", "train-iters": "4", "vocab-size": "64", "data-order": "keyed", "log-interval": "1",
        "eval-iters": "1", "threads": "1", "log-jsonl": "log.jsonl", "log-memory-interval": "1", "mock-data": None, "hidden-dropout": "0",
        "attention-dropout": "0"}
UNSET = object()

ROPE = {"position-embedding-type": "rope"}
YARN = {"position-embedding-type": "yarn", "rotary-scaling-factor": "4", "yarn-original-max-position-embeddings": "8"}
LONGROPE = {"rope-type": "longrope", "longrope-short-factors": ["1", "1", "2", "2"], "longrope-long-factors": ["3", "3", "4", "4"],
            "longrope-original-max-position-embeddings": "8"}
LLAMA3 = ROPE | {"use-rope-scaling": None}
LATENT = ROPE | {"multi-latent-attention": None, "qk-head-dim": "8", "qk-pos-emb-head-dim": "4", "v-head-dim": "8"}
TP2, PP2, CP2, DP2 = ({"ranks": "2"} | d for d in ({"tensor-model-parallel-size": "2"}, {"pipeline-model-parallel-size": "2"},
                                                   {"context-parallel-size": "2"}, {}))
CP4 = {"ranks": "4", "context-parallel-size": "4", "cp-comm-type": "a2a+p2p"}
PP2L4 = PP2 | {"num-layers": "4"}
LONG = {"train-iters": "6"}
WSD = {"lr-decay-style": "WSD", "lr-wsd-decay-iters": "2"}
F16 = {"fp16": None}
BF16 = {"bf16": None}
SAVE = {"save": "ck", "save-interval": "2"}
TB = {"tensorboard-dir": "tb"}
BPE = {"vocab-file": str(TEXT / "toy_bpe_vocab.json"), "merge-file": str(TEXT / "toy_bpe_merges.txt"), "vocab-size": UNSET}
SPIECE = {"tokenizer-type": "SentencePieceTokenizer", "tokenizer-model": str(TEXT / "toy.model"), "vocab-size": UNSET}
NULL = {"tokenizer-type": "NullTokenizer"}
LION, LAMB, MUON = ({"optimizer": kind} for kind in ("lion", "lamb", "muon"))
LAMB1 = {"optimizer": "onebitlamb", "onebit-freeze-step": "3", "train-iters": "6"} | DP2
ZERO1 = {"optimizer": "zerooneadam", "adam-eps": "0.001", "zeroone-var-freeze-step": "2", "zeroone-var-update-scaler": "1", "zeroone-local-step-scaler": "1", "train-iters": "8"} | DP2
NARROW = {"use-precision-aware-optimizer": None}
FULL = {"recompute-granularity": "full"}
REAL = {"mock-data": UNSET, "data-path": "corpus", "tokenizer-type": "ByteLevelTokenizer", "vocab-size": UNSET, "split": "8,1,1"}
SPLITS = {"mock-data": UNSET, "tokenizer-type": "ByteLevelTokenizer", "vocab-size": UNSET}
CHAT = {"mock-data": UNSET, "vocab-size": UNSET, "data-path": "talk.lines", "split": "8,1,1", "seq-length": "96", "sft": None, "tokenizer-type": "SFTTokenizer", "tokenizer-model": "letters"}
CACHED = REAL | {"data-order": "stored", "data-cache-path": "cache", "tokenizer-type": "NullTokenizer", "vocab-size": "512"}
GOES_ON = {"load": "saved", "train-iters": "6", "override-opt-param-scheduler": None}
SAMPLE = BPE | {"sample-prompt": "a", "tokenizer-type": "GPT2BPETokenizer"}

MARKERS = ["<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<|endoftext|>"]
FIM = BPE | {"tokenizer-type": "GPT2BPETokenizer", "tokenizer-special-tokens": MARKERS, "fim-data": None, "fim-rate": "1"}
BERT = {"family": "bert", "data-order": UNSET}  # no flag but the word that names the model
T5 = {"family": "t5", "data-order": UNSET, "decoder-seq-length": "16"}
SLOPES = {"position-embedding-type": "alibi"}
DISTANCES = T5 | {"position-embedding-type": "relative"}
FRAGMENTS = FIM | {"fim-split-sample": "a", "fim-fragment-rate": "1"}

CURRICULUM = {"curriculum-schedule": "fixed_linear", "curriculum-min-length": "4", "curriculum-steps": "4", "curriculum-multiple": "4"}
ALL_SAMPLES = "all:clusters=single_cluster,curve=fixed_linear,least=1,most=2,steps=2"
TOKENS = {"token-drop-layers": ["1"], "token-drop-min-tokens": "4", "token-drop-max-tokens": "16", "token-drop-steps": "4"}
STAIRS = {"curriculum-schedule": "fixed_discrete", "curriculum-lengths": ["4", "16"], "curriculum-until": ["2"]}
DELTA = {"swiglu": None, "experimental-attention-variant": "gdn", "linear-attention-freq": "2", "linear-num-key-heads": "2", "linear-num-value-heads": "4",
         "linear-key-head-dim": "8", "linear-value-head-dim": "8"}

LETTERS = {"num-layers": UNSET, "swiglu": None, "hybrid-layer-pattern": "MM", "mamba-num-heads": "4", "mamba-head-dim": "8", "mamba-state-dim": "8", "mamba-num-groups": "2"}

# flag: (what else is given, the words of one run, the words of the other); no words: the flag is left out.
PAIRS = {
    "num-layers": ({}, "2", "3"), "encoder-num-layers": ({"num-layers": UNSET}, "2", "3"), "hidden-size": ({}, "32", "64"),
    "ffn-hidden-size": ({}, "64", "96"), "num-attention-heads": ({}, "4", "2"), "kv-channels": ({}, "8", "16"),
    "group-query-attention": ({}, True, UNSET), "num-query-groups": ({}, "1", "2"), "num-key-value-heads": ({}, "1", "2"), "seq-length": ({}, "16", "32"),
    "decoder-num-layers": (T5, "1", "2"), "decoder-seq-length": (T5, "16", "64"),
    "alibi-power": (SLOPES, "8", "4"), "alibi-scaled": (SLOPES, True, UNSET), "embed-layernorm": ({}, True, UNSET),
    "relative-attention-num-buckets": (DISTANCES, "8", "16"),
    "relative-attention-max-distance": (DISTANCES | {"relative-attention-num-buckets": "8"}, "6", "12"),
    "multi-latent-attention": (ROPE, True, UNSET), "q-lora-rank": (LATENT, "8", UNSET), "kv-lora-rank": (LATENT, "8", "16"),
    "qk-head-dim": (LATENT, "8", "16"), "qk-pos-emb-head-dim": (LATENT, "4", "8"), "v-head-dim": (LATENT, "8", "16"), "latent-norm-epsilon": (LATENT | {"qk-layernorm": None}, UNSET, "0.1"),
    "experimental-attention-variant": (DELTA | {"experimental-attention-variant": UNSET}, "gdn", UNSET), "attention-output-gate": ({}, True, UNSET),
    "linear-attention-freq": (DELTA, "2", "[1,1]"), "linear-conv-kernel-dim": (DELTA, "4", "2"), "linear-key-head-dim": (DELTA, "8", "4"),
    "linear-value-head-dim": (DELTA, "8", "4"), "linear-num-key-heads": (DELTA, "2", "4"), "linear-num-value-heads": (DELTA, "4", "8"),
    "hybrid-layer-pattern": (LETTERS, "MM", "M-"), "hybrid-override-pattern": (LETTERS | {"hybrid-layer-pattern": UNSET}, "MM", "M*"),
    "mtp-hybrid-override-pattern": (LETTERS | {"mtp-num-layers": "1"}, "M", "-"), "mamba-num-heads": (LETTERS, "4", "2"), "mamba-head-dim": (LETTERS, "8", "4"),
    "mamba-state-dim": (LETTERS, "8", "4"), "mamba-num-groups": (LETTERS, "2", "1"), "mamba-conv-kernel-dim": (LETTERS, "4", "2"),
    "mamba-norm-epsilon": (LETTERS, "1e-5", "0.1"),
    "mtp-num-layers": ({}, "1", "2"), "mtp-use-repeated-layer": ({"mtp-num-layers": "2"}, True, UNSET), "mtp-loss-scaling-factor": ({"mtp-num-layers": "1"}, "0.1", "0.5"),
    "encoder-seq-length": ({"seq-length": UNSET}, "16", "32"), "max-position-embeddings": ({}, "16", "32"),
    "position-embedding-type": ({}, "rope", "none"), "use-rotary-position-embeddings": ({}, True, UNSET),
    "no-position-embedding": ({}, True, UNSET), "rotary-base": (ROPE, "10000", "100"), "rotary-position-embeddings-theta": (ROPE, "10000", "100"), "rotary-percent": (ROPE, "1", "0.5"),
    "rotary-interleaved": (ROPE, True, UNSET), "rotary-seq-len-interpolation-factor": (ROPE, "1", "4"), "use-rope-scaling": (ROPE, True, UNSET),
    "rope-scaling-factor": (LLAMA3, "8", "2"), "rotary-scaling-factor": (YARN, "4", "2"),
    "yarn-rotary-scaling-factor": (YARN | {"rotary-scaling-factor": UNSET}, "4", "2"), "yarn-original-max-position-embeddings": (YARN, "8", "64"),
    "yarn-beta-fast": (YARN | {"yarn-original-max-position-embeddings": "4096"}, "32", "600"), "yarn-beta-slow": (YARN | {"yarn-beta-fast": "0.5"}, "0.01", "0.4"), "mscale": (YARN, "1", "2"),
    "no-yarn-correction-range-round-to-int": (YARN | {"yarn-original-max-position-embeddings": "4096"}, True, UNSET),
    "mscale-all-dim": (YARN, "0", "1"), "no-rope-freq": (ROPE, "2", UNSET), "rope-low-freq-factor": (LLAMA3, "1", "2000"),
    "rope-high-freq-factor": (LLAMA3, "4", "4000"), "rope-type": ({}, "rope", UNSET), "normalization": ({}, "LayerNorm", "RMSNorm"),
    "norm-epsilon": ({}, "1e-5", "0.1"), "apply-layernorm-1p": ({}, True, UNSET), "qk-layernorm": ({}, True, UNSET), "disable-norm-bias": ({}, True, UNSET), "disable-projection-bias": ({}, True, UNSET), "logits-bias": ({}, True, UNSET), "qk-layernorm-whole": ({}, True, UNSET), "swiglu": ({}, True, UNSET),
    "geglu": ({}, True, UNSET), "quick-geglu": ({}, True, UNSET), "squared-relu": ({}, True, UNSET),
    "activation-func-clamp-value": ({"quick-geglu": None, "init-method-std": "0.5"}, "0.1", UNSET), "glu-linear-offset": ({"quick-geglu": None}, "0", "1"),
    "softmax-type": ({}, "learnable", "off-by-one"),
    "openai-gelu": ({"disable-bias-linear": None}, True, UNSET), "no-bias-gelu-fusion": ({}, True, UNSET),
    "disable-bias-linear": ({}, True, UNSET), "add-qkv-bias": ({"disable-bias-linear": None}, True, UNSET),
    "untie-embeddings-and-output-weights": ({}, True, UNSET), "embedding-multiplier": ({}, "1", "2"), "attention-dropout": ({}, "0", "0.2"),
    "qk-layernorm-each": ({}, True, UNSET), "qk-layernorm-turned": (ROPE | {"qk-layernorm-each": None}, True, UNSET), "qkv-limit": ({"init-method-std": "0.5"}, "1", UNSET),
    "disable-norm-gain": ({}, True, UNSET), "disable-mlp-bias": ({}, True, UNSET), "qk-l2-norm": ({}, True, UNSET), "qk-l2-norm-turning": (ROPE | {"qk-l2-norm": None, "no-rope-freq": "2"}, True, UNSET), "norm-places": ({}, "around", "behind"), "parallel-sublayers": ({}, "own-norms", "one-norm"), "residual-multiplier": ({}, "1", "0.5"), "fp32-residual-connection": ({"bf16": None}, True, UNSET),
    "longrope-short-factors": (LONGROPE | {"longrope-original-max-position-embeddings": "16"}, ["1", "1", "1", "1"], ["1", "2", "3", "4"]),
    "longrope-long-factors": (LONGROPE, ["1", "1", "1", "1"], ["1", "2", "3", "4"]),
    "longrope-original-max-position-embeddings": (LONGROPE, "8", "16"), "rotary-window-base": (ROPE | {"window-size": "3,0"}, "100", UNSET), "hidden-dropout": ({}, "0", "0.2"), "softmax-scale": ({}, "0.1", "3"), "attention-cap": ({}, "0.1", UNSET), "attention-chunk": ({}, "3", "8"), "output-cap": ({}, "0.1", UNSET),
    "query-growth-every": ({}, "2", UNSET), "query-growth": ({"query-growth-every": "2"}, "0.1", "0.7"), "query-growth-of": ({"query-growth-every": "2"}, "still", "all"), "window-size": ({}, "3,0", "8,0"),
    "window-attn-skip-freq": ({"window-size": "3,0"}, "2", UNSET), "vocab-size": ({}, "64", "128"),
    "make-vocab-size-divisible-by": ({}, "64", "1024"), "padded-vocab-size": ({}, "64", "1024"), "no-pad-vocab-size": ({}, True, UNSET), "disable-pad-vocab-size": ({}, True, UNSET),
    "init-method-std": ({}, "0.02", "0.1"), "embedding-init-method-std": ({}, "0.02", "0.1"), "init-method-xavier-uniform": ({}, True, UNSET),
    "no-scaled-init-method": ({}, True, UNSET),
    "use-mup": ({"mup-base-hidden-size": "16"}, True, UNSET), "mup-base-hidden-size": ({"use-mup": None}, "16", "8"),
    "mup-embedding-mult": ({"use-mup": None}, "1", "2"), "mup-output-mult": ({"use-mup": None}, "0.5", "2"),
    "mup-base-head-dim": ({"use-mup": None}, "4", "8"), "mup-attn-scale-power": ({"use-mup": None}, "1", "0.5"),
    "hierarchical-context-parallel-sizes": (CP4, ["2", "2"], ["1", "4"]), "bf16": ({}, True, UNSET), "fp16": ({}, True, UNSET), "exact": ({}, True, UNSET),
    "tensor-model-parallel-size": ({"ranks": "2"}, "2", "1"), "pipeline-model-parallel-size": ({"ranks": "2"}, "2", "1"),
    "context-parallel-size": ({"ranks": "2"}, "2", "1"), "sequence-parallel": (TP2, True, UNSET),
    "use-tp-pp-dp-mapping": (PP2 | {"ranks": "4"}, True, UNSET),
    "enable-zbh1-pipeline": (PP2L4 | {"global-batch-size": "16"}, True, UNSET),
    "pipeline-schedule": (PP2L4 | {"global-batch-size": "16"}, "gpipe", "1f1b"), "num-layers-per-virtual-pipeline-stage": (PP2L4, "1", UNSET),
    "num-virtual-stages-per-pipeline-rank": (PP2L4, "2", UNSET),
    "microbatch-group-size-per-virtual-pipeline-stage": (PP2L4 | {"num-virtual-stages-per-pipeline-rank": "2", "global-batch-size": "16"}, "2", "4"),
    "pipeline-model-parallel-layout": (PP2L4, "Ettt|tL", "Et|tttL"), "decoder-first-pipeline-num-layers": (PP2L4, "1", "3"),
    "decoder-last-pipeline-num-layers": (PP2L4, "1", "3"), "num-layers-in-first-pipeline-stage": (PP2L4, "1", "3"),
    "num-layers-in-last-pipeline-stage": (PP2L4, "1", "3"),
    "account-for-embedding-in-pipeline-split": (PP2 | {"num-layers": "3"}, True, UNSET),
    "account-for-loss-in-pipeline-split": (PP2 | {"num-layers": "3"}, True, UNSET), "use-distributed-optimizer": (DP2, True, UNSET),
    "zero-stage": (DP2, "0", "1"),
    "data-parallel-sharding-strategy": (DP2, "optim", "no_shard"), "use-megatron-fsdp": (DP2, True, UNSET), "use-torch-fsdp2": (DP2, True, UNSET),
    "num-distributed-optimizer-instances": ({"ranks": "4", "zero-stage": "1", "micro-batch-size": "1"}, "1", "2"),
    "zero-hpz-partition-size": ({"ranks": "4", "zero-stage": "3", "micro-batch-size": "1"}, "2", UNSET), "cp-comm-type": (CP2, "p2p", "a2a"),
    "zero-quantized-weights": (DP2 | {"zero-stage": "3", "micro-batch-size": "1"}, True, UNSET),
    "zero-quantized-weights-block": (DP2 | {"zero-stage": "3", "micro-batch-size": "1", "zero-quantized-weights": None}, "64", UNSET),
    "zero-quantized-gradients": (DP2 | {"zero-stage": "2", "micro-batch-size": "1"}, True, UNSET),
    "zero-quantized-gradients-block": (DP2 | {"zero-stage": "2", "micro-batch-size": "1", "zero-quantized-gradients": None}, "64", UNSET),
    "reduce-gradients-once": (DP2 | {"zero-stage": "2", "micro-batch-size": "1"}, True, UNSET), "ranks": ({}, "1", "2"), "device": ({}, "cpu", "cpu:reference"),
    "sample-prompt": (SAMPLE, "a", "b"),
    "sample-tokens": (SAMPLE, "2", "8"), "deepspeed_config": ({}, "ds.json", UNSET), "deepspeed": ({}, True, UNSET),
    "deepspeed-activation-checkpointing": ({"num-layers": "4"}, True, UNSET), "train-iters": ({}, "4", "5"),
    "train-samples": ({"train-iters": UNSET}, "16", "20"), "train-tokens": ({"train-iters": UNSET}, "256", "320"), "micro-batch-size": ({}, "1", "4"),
    "global-batch-size": ({}, "4", "8"), "rampup-batch-size": ({"train-iters": UNSET, "train-samples": "24"}, ["2", "2", "4"], UNSET),
    "step-batch-size-schedule": ({"global-batch-size": UNSET}, "0:4", "0:2 64:4"),
    "decrease-batch-size-if-needed": ({"train-iters": UNSET, "train-samples": "24", "rampup-batch-size": ["3", "1", "4"], "micro-batch-size": "2"}, True, UNSET),
    "calculate-per-token-loss": (REAL | {"eod-mask-loss": None}, True, UNSET), "eval-interval": ({}, "1", "2"), "start-eval-at-iter": ({"eval-interval": "1"}, "2", "4"), "eval-iters": ({}, "1", "2"),
    "eval-global-batch-size": ({}, "4", "8"), "eval-micro-batch-size": ({"eval-global-batch-size": "64", "eval-interval": "1"}, "4", "64"),
    "full-validation": (REAL, True, UNSET), "skip-train": ({}, True, UNSET), "exit-interval": ({}, "2", "3"),
    "exit-duration-in-mins": ({}, "1e-9", "5"), "seed": ({}, "1", "2"), "non-finite": ({"lr": "100000", "train-iters": "8", "init-method-std": "1e18"}, "stop", "skip"),
    "no-check-for-nan-in-loss-and-grad": ({"lr": "100000", "train-iters": "8", "init-method-std": "1e18"}, True, UNSET),
    "iterations-to-skip": ({}, "2", "3"),
    "rerun-check": ({"error-injection-rate": "2"}, "2", UNSET),
    "rerun-mode": ({"error-injection-rate": "2"}, "go_on", "validate_results"), "error-injection-rate": ({}, "2", "3"),
    "error-injection-type": ({"error-injection-rate": "2"}, "transient_error", "persistent_error"), "finetune": (GOES_ON, True, UNSET),
    "optimizer": ({}, "adam", "sgd"), "lr": ({}, "0.01", "0.02"), "min-lr": ({}, "0", "0.005"), "lr-warmup-init": ({"lr-warmup-iters": "2"}, "0", "0.005"),
    "lr-decay-style": ({}, "cosine", "linear"), "lr-decay-iters": ({}, "4", "8"), "lr-decay-samples": ({"train-iters": UNSET, "train-samples": "16"}, "16", "32"),
    "lr-decay-tokens": ({}, "256", "512"), "lr-warmup-fraction": ({}, "0.25", "0.5"), "lr-warmup-iters": ({}, "1", "2"),
    "lr-warmup-samples": ({"train-iters": UNSET, "train-samples": "16"}, "4", "8"), "lr-warmup-tokens": ({}, "64", "128"),
    "lr-wsd-decay-style": (WSD | LONG | {"lr-wsd-decay-iters": "4"}, "linear", "minus_sqrt"), "lr-wsd-decay-iters": (WSD, "2", "3"),
    "lr-wsd-decay-samples": ({"train-iters": UNSET, "train-samples": "16", "lr-decay-style": "WSD"}, "8", "12"), "decoupled-lr": ({}, "0.01", "0.03"),
    "decoupled-min-lr": ({"decoupled-lr": "0.02"}, "0", "0.01"), "weight-decay": ({}, "0", "0.5"),
    "start-weight-decay": ({"weight-decay-incr-style": "linear", "end-weight-decay": "1"}, "0", "0.5"),
    "end-weight-decay": ({"weight-decay-incr-style": "linear", "start-weight-decay": "0"}, "1", "0.5"),
    "weight-decay-incr-style": ({"start-weight-decay": "0", "end-weight-decay": "1"}, "linear", "cosine"),
    "apply-wd-to-qk-layernorm": ({"qk-layernorm": None, "weight-decay": "0.9"}, True, UNSET),
    "no-weight-decay-cond-type": ({"qk-layernorm": None, "weight-decay": "0.9"}, "apply_wd_to_qk_layernorm", UNSET), "no-decoupled-weight-decay": ({"weight-decay": "0.5"}, True, UNSET),
    "clip-grad": ({}, "1", "0.01"), "adam-beta1": ({}, "0.9", "0.5"), "adam-beta2": ({}, "0.999", "0.5"), "adam-eps": ({}, "1e-8", "1"),
    "optimizer-cpu-offload": ({"offload-directory": "spill"}, True, UNSET), "offload-directory": ({"optimizer-cpu-offload": None}, "spill", "other"),
    "optimizer-offload-fraction": ({"optimizer-cpu-offload": None, "offload-directory": "spill", "hidden-size": "128"}, "1", "0.1"),
    "offload-buffers": ({"optimizer-cpu-offload": None, "offload-directory": "spill"}, "3", "5"), "offload-weights": ({"optimizer-cpu-offload": None, "offload-directory": "spill"}, True, UNSET),
    "onebit-freeze-step": ({"optimizer": "onebitadam"} | DP2, "2", "3"), "onebit-coeff-beta": (LAMB1, "0.9", "0.5"), "onebit-factor-min": (LAMB1, "0.5", "1.05"),
    "onebit-factor-max": (LAMB1, "4", "0.95"), "onebit-factor-threshold": (LAMB1 | {"onebit-factor-min": "1.05"}, "0.1", "0.01"), "zeroone-var-freeze-step": (ZERO1, "2", "3"),
    "zeroone-var-update-scaler": (ZERO1 | {"zeroone-var-freeze-step": "5"}, "1", "3"), "zeroone-local-step-scaler": (ZERO1, "1", "5"),
    "zeroone-local-step-clipper": (ZERO1, "1", "4"), "lion-beta1": (LION, "0.9", "0.1"), "lion-beta2": (LION, "0.99", "0.1"), "lamb-min-coeff": (LAMB, "0.01", "5"), "lamb-max-coeff": (LAMB, "10", "0.02"),
    "lamb-no-bias-correction": (LAMB, True, UNSET), "lamb-eps-inside-sqrt": (LAMB | {"adam-eps": "0.1"}, True, UNSET),
    "qk-clip": ({"qk-clip-threshold": "1e-3"}, True, UNSET), "qk-clip-alpha": ({"qk-clip": None, "qk-clip-threshold": "1e-3"}, "0.5", "0.1"),
    "qk-clip-threshold": ({"qk-clip": None}, "1e-3", "1e-2"),
    "muon-momentum": (MUON, "0.9", "0.5"), "muon-use-nesterov": (MUON, True, UNSET), "muon-nesterov": (MUON, True, UNSET), "muon-no-split-qkv": (MUON, True, UNSET),
    "muon-scale-mode": (MUON, "spectral", "unit_rms_norm"), "muon-extra-scale-factor": (MUON, "1", "0.2"), "muon-tp-mode": (MUON | TP2, "blockwise", "duplicated"),
    "muon-scalar-optimizer": (MUON, "adam", "lion"), "muon-fp32-matmul-prec": (MUON, "medium", "highest"), "muon-num-ns-steps": (MUON, "5", "10"), "muon-coefficient-type": (MUON, "quintic", "simple"),
    "exp-avg-dtype": (NARROW, "fp32", "fp8"), "exp-avg-sq-dtype": (NARROW, "fp32", "bf16"), "use-precision-aware-optimizer": ({"exp-avg-dtype": "bf16"}, True, UNSET),
    "sgd-momentum": ({"optimizer": "sgd"}, "0.9", "0.1"), "loss-scale": (F16, "8", "1024"), "initial-loss-scale": (F16, "8", "1024"),
    "min-loss-scale": (F16 | {"initial-loss-scale": "1e30", "hysteresis": "1"}, "9e29", "1"),
    "loss-scale-window": (F16 | {"initial-loss-scale": "8"}, "1", "1000"), "hysteresis": (F16 | {"initial-loss-scale": "1e30"}, "1", "3"),
    "grad-reduce-in-bf16": (DP2, True, UNSET), "megatron-fsdp-grad-comm-dtype": (DP2, "fp32", "bf16"),
    "main-grads-dtype": (BF16, "fp32", "bf16"), "megatron-fsdp-main-grads-dtype": (BF16, "fp32", "bf16"), "recompute-granularity": ({"num-layers": "4"}, "full", UNSET), "recompute-activations": ({"num-layers": "4", "recompute-modules": "mlp"}, True, UNSET),
    "recompute-method": (FULL | {"num-layers": "8"}, "uniform", "block"), "recompute-num-layers": (FULL | {"num-layers": "4"}, "1", "4"),
    "recompute-modules": ({"recompute-granularity": "selective", "num-layers": "4"}, "mlp", "core_attn"),
    "activations-checkpoint-method": ({"num-layers": "4"}, "uniform", UNSET), "checkpoint-activations": ({"num-layers": "4"}, True, UNSET),
    "data-path": (REAL, "corpus", "other"), "train-data-path": (SPLITS, "corpus", "other"),
    "valid-data-path": (SPLITS | {"train-data-path": "corpus", "eval-interval": "2"}, "corpus", "other"),
    "test-data-path": (SPLITS | {"train-data-path": "corpus"}, "corpus", "other"),
    "data-args-path": (SPLITS | {"split": "8,1,1"}, "paths.txt", "paths2.txt"),
    "per-split-data-args-path": (SPLITS, "splits.json", "splits2.json"), "split": (REAL, "90,5,5", "40,30,30"),
    "mock-data": (REAL | {"data-path": UNSET, "split": UNSET}, True, UNSET), "data-cache-path": (CACHED, "cache", UNSET),
    "data-cache-version": (CACHED, "0.12", "0.16"),
    "data-cache-tokenizer": (CACHED, "identity.json", UNSET),
    "data-order": (REAL, "keyed", "stored"), "dataloader-type": ({}, "cyclic", "single"), "no-data-sharding": (DP2 | {"dataloader-type": "cyclic"}, True, UNSET),
    "eod-mask-loss": (REAL, True, UNSET), "reset-position-ids": (REAL, True, UNSET),
    "reset-attention-mask": (REAL, True, UNSET), "dataloader-inter-document-masking": (REAL, True, UNSET),
    "keep-last-partial-validation-sequence": (SPLITS | {"train-data-path": "corpus", "valid-data-path": "small", "full-validation": None, "micro-batch-size": "1", "global-batch-size": "1",
                                                        "data-order": "stored", "seq-length": "13"}, True, UNSET),
    "multiple-validation-sets": (SPLITS | {"train-data-path": "corpus", "valid-data-path": ["1", "corpus", "1", "other"], "eval-interval": "2"}, True, UNSET),
    "validation-set-names": (SPLITS | {"train-data-path": "corpus", "valid-data-path": ["corpus", "other"], "eval-interval": "2",
                              "multiple-validation-sets": None}, ["x", "y"], UNSET),
    "tokenizer-type": (REAL | {"vocab-size": "512", "eod-mask-loss": None}, "NullTokenizer", "ByteLevelTokenizer"), "tokenizer-model": (SPIECE, str(TEXT / "toy.model"), "nowhere.model"),
    "vocab-file": (BPE, BPE["vocab-file"], "longer.json"), "merge-file": (SAMPLE | {"sample-prompt": "hello world"}, BPE["merge-file"], "shorter.txt"),
    "tiktoken-pattern": ({"tokenizer-type": "TikTokenizer", "tokenizer-model": "ranks.tiktoken", "vocab-size": "1300"}, "v2", "([a-z]+"),
    "tokenizer-special-tokens": (BPE, "<new>", UNSET), "tiktoken-special-tokens": (BPE, "<new>", UNSET),
    "tokenizer-sentencepiece-legacy": (SPIECE | {"tokenizer-special-tokens": "<new>"}, True, UNSET),
    "null-tokenizer-eod-id": (REAL | {"tokenizer-type": "NullTokenizer", "vocab-size": "512", "eod-mask-loss": None}, "101", "256"), "save": ({"save-interval": "2"}, "ck", "other"),
    "save-interval": ({"save": "ck"}, "2", "3"), "save-retain-interval": ({"save": "ck", "save-interval": "1"}, "2", UNSET), "persistent-save-interval": ({"save": "ck"}, "2", "3"),
    "non-persistent-save-interval": ({"save": "ck", "save-interval": "2"}, "1", UNSET),
    "no-save-optim": (SAVE, True, UNSET), "no-save-rng": (SAVE, True, UNSET), "save-keep-last": (SAVE, "1", "2"),
    "save-keep-best": (SAVE | {"eval-interval": "1", "save-interval": "1", "save-keep-last": "1"}, "1", "3"), "verify-resume": (SAVE, True, UNSET),
    "log-interval": ({}, "1", "2"), "log-throughput": ({}, True, UNSET), "log-params-norm": ({}, True, UNSET), "log-max-attention-logit": ({}, True, UNSET), "log-num-zeros-in-grad": ({}, True, UNSET),
    "log-progress": (SAVE, True, UNSET), "log-memory-interval": ({}, "1", "2"), "log-jsonl": ({}, "log.jsonl", "other.jsonl"), "tensorboard-dir": ({}, "tb", UNSET),
    "tensorboard-log-interval": (TB, "1", "4"), "log-timers-to-tensorboard": (TB | {"timing-log-level": "1"}, True, UNSET),
    "log-memory-to-tensorboard": (TB, True, UNSET), "log-validation-ppl-to-tensorboard": (TB, True, UNSET), "log-world-size-to-tensorboard": (TB, True, UNSET),
    "no-log-learning-rate-to-tensorboard": (TB, True, UNSET), "no-log-loss-scale-to-tensorboard": (TB, True, UNSET), "disable-log-loss-scale-to-tensorboard": (TB, True, UNSET),
    "timing-log-level": ({}, "0", "2"),
    "timing-log-option": ({"timing-log-level": "1"}, "all", "minmax"), "vocab-extra-ids": (BPE, "10", UNSET),
    "load": (GOES_ON | {"load": UNSET}, "saved", UNSET), "ckpt-step": (GOES_ON, "2", "4"),
    "pretrained-checkpoint": ({}, "saved", UNSET), "no-load-optim": (GOES_ON, True, UNSET),
    "no-load-rng": (GOES_ON | {"seed": "7"}, True, UNSET), "allow-fresh-start": ({"load": "empty"}, True, UNSET),
    "use-checkpoint-args": (GOES_ON | {"num-layers": UNSET}, True, UNSET),
    "override-opt-param-scheduler": ({"load": "saved", "train-iters": "6", "lr": "0.02", "lr-decay-iters": "4"}, True, UNSET),
    "use-checkpoint-opt-param-scheduler": ({"load": "saved", "train-iters": "6", "lr": "0.02", "lr-decay-iters": "4"}, True, UNSET),
}
PAIRS |= {
    "curriculum-schedule": (CURRICULUM, "fixed_linear", "none"), "curriculum-form": (CURRICULUM, "truncate", "reshape"),
    "curriculum-min-length": (CURRICULUM, "4", "8"), "curriculum-max-length": (CURRICULUM, "12", "16"), "curriculum-steps": (CURRICULUM, "2", "4"),
    "curriculum-multiple": (CURRICULUM | {"curriculum-min-length": "8"}, "4", "8"), "curriculum-root": (CURRICULUM | {"curriculum-schedule": "fixed_root"}, "1", "2"),
    "train-data-exact-num-epochs": (BERT, "1", "2"),  # whose epochs are shuffled together
    "difficulty-metrics": ({}, [ALL_SAMPLES], UNSET), "difficulty-seed": ({"difficulty-metrics": [ALL_SAMPLES]}, "1", "2"),
    "curriculum-lengths": (STAIRS, ["4", "16"], ["8", "16"]), "curriculum-until": (STAIRS, ["1"], ["3"]),
    "sft": (CHAT | {"sft": UNSET}, True, UNSET), "sft-tokenizer-prompt-format": (CHAT, "identity", "default"), "sft-loss": (CHAT, "answers", "all"),
    "fim-data": (FIM, True, UNSET), "fim-rate": (FIM, "1", "0"), "fim-spm-rate": (FIM, "0", "1"), "fim-split-sample": (FRAGMENTS, "a", "b"),
    "fim-fragment-rate": (FRAGMENTS, "0", "1"), "fim-prefix-token": (FIM, "<fim_prefix>", "<fim_pad>"), "fim-middle-token": (FIM, "<fim_middle>", "<fim_pad>"),
    "fim-suffix-token": (FIM, "<fim_suffix>", "<fim_pad>"), "fim-eod-token": (FIM, "<|endoftext|>", "a"),
}
PAIRS |= {
    "token-drop-layers": (TOKENS, ["0"], ["0", "1"]), "token-drop-min-tokens": (TOKENS, "4", "8"), "token-drop-max-tokens": (TOKENS, "12", "16"),
    "token-drop-steps": (TOKENS, "2", "4"), "token-drop-multiple": (TOKENS, "1", "4"),
    "layer-drop-theta": ({"layer-drop-gamma": "1"}, "0", "1"), "layer-drop-gamma": ({"layer-drop-theta": "0"}, "0.1", "5"),
    "bert-no-binary-head": (BERT, True, UNSET), "mask-prob": (BERT, "0.15", "0.4"), "short-seq-prob": (BERT, "0", "0.9"),
    "apply-residual-connection-post-layernorm": ({}, True, UNSET), "bert-token-types": (BERT | {"bert-no-binary-head": None}, True, UNSET),
    "no-output-bias": (BERT, True, UNSET), "output-multiplier": ({}, "1", "2"), "relu": ({}, True, UNSET),
    "legacy-tokenizer": (BERT | {"tokenizer-type": "BertWordPieceLowerCase", "vocab-file": str(TEXT / "toy_wordpiece_vocab.txt"), "vocab-size": UNSET}, True, UNSET),
}
EXPERTS = {"num-experts": "4", "moe-ffn-hidden-size": "32"}
SIGMOIDS = EXPERTS | {"moe-router-score-function": "sigmoid"}
BALANCED = EXPERTS | {"moe-aux-loss-coeff": "0.1"}
FULL_ROOM = EXPERTS | {"moe-expert-capacity-factor": "0.5"}
SHARED = EXPERTS | {"moe-shared-expert-intermediate-size": "32"}
PAIRS |= {
    "num-experts": ({}, "4", "8"), "moe-layer-freq": (EXPERTS, "2", "[0,1]"), "moe-ffn-hidden-size": (EXPERTS, "32", "64"),
    "moe-shared-expert-intermediate-size": (EXPERTS, "32", UNSET), "moe-shared-expert-gate": (SHARED, True, UNSET), "moe-latent-size": (EXPERTS, "16", UNSET),
    "moe-apply-probs-on-input": (EXPERTS, True, UNSET), "moe-router-topk": (EXPERTS, "2", "3"), "topk": (EXPERTS, "2", "3"), "moe-router-score-function": (EXPERTS, "softmax", "sigmoid"),
    "moe-router-pre-softmax": (EXPERTS, True, UNSET), "moe-router-num-groups": (SIGMOIDS | {"moe-router-group-topk": "1", "init-method-std": "0.5"}, "2", "1"),
    "moe-router-group-topk": (SIGMOIDS | {"moe-router-num-groups": "2", "init-method-std": "0.5"}, "1", "2"),
    "moe-router-topk-scaling-factor": (EXPERTS, "1", "2"), "moe-router-enable-expert-bias": (SIGMOIDS | {"moe-router-bias-update-rate": "1"}, True, UNSET),
    "moe-router-bias-update-rate": (SIGMOIDS | {"moe-router-enable-expert-bias": None}, "0.001", "1"),
    "moe-router-load-balancing-type": (BALANCED, "aux_loss", "seq_aux_loss"), "moe-aux-loss-coeff": (EXPERTS, "0.1", "0.2"), "moe-loss-coeff": (EXPERTS, "0.1", "0.2"),
    "moe-z-loss-coeff": (EXPERTS, "0.1", UNSET), "moe-expert-capacity-factor": (EXPERTS, "0.5", "1"), "moe-train-capacity-factor": (EXPERTS, "0.5", "1"),
    "moe-token-drop-policy": (FULL_ROOM, "probs", "position"), "expert-model-parallel-size": (EXPERTS | DP2, "1", "2"), "moe-expert-parallel-size": (EXPERTS | DP2, "1", "2"),
    "expert-tensor-parallel-size": (EXPERTS | TP2 | {"disable-bias-linear": None}, "1", "2"), "expert-interval": (EXPERTS, "1", "2"),
    "moe-eval-capacity-factor": (FULL_ROOM | {"eval-interval": "2"}, "0.25", "4"), "moe-min-capacity": (FULL_ROOM, "0", "100"),
    "moe-pad-expert-input-to-capacity": (EXPERTS | {"moe-expert-capacity-factor": "4"}, True, UNSET),
    "moe-input-jitter-eps": (EXPERTS, "0.5", UNSET), "moe-router-dtype": (EXPERTS, "fp32", "fp64"), "moe-router-force-load-balancing": (EXPERTS, True, UNSET), "moe-layer-recompute": (EXPERTS | {"num-layers": "4"}, True, UNSET),
    "mlp-type": (EXPERTS, "standard", "residual"), "disable-moe-token-dropping": (EXPERTS | {"moe-train-capacity-factor": "0.5"}, True, UNSET),
    "ds-sequence-parallel-size": ({"ranks": "2"}, "2", "1"),
    "checkpoint-num-layers": (FULL | {"num-layers": "4"}, "1", "4"), "activations-checkpoint-num-layers": (FULL | {"num-layers": "4"}, "1", "4"),
    "override-lr-scheduler": ({"load": "saved", "train-iters": "6", "lr": "0.02", "lr-decay-iters": "4"}, True, UNSET),
    "use-checkpoint-lr-scheduler": ({"load": "saved", "train-iters": "6", "lr": "0.02", "lr-decay-iters": "4"}, True, UNSET),
    "moe-per-layer-logging": (EXPERTS, True, UNSET), "moe-use-upcycling": ({"load": "saved", "num-experts": "4", "train-iters": "6"}, True, UNSET),
}
FP8 = {"fp8-format": "hybrid", "num-layers": "3", "train-iters": "6"}
WINDOW = FP8 | {"fp8-amax-history-len": "4", "fp8-amax-compute-algo": "max"}
CURRENT = FP8 | {"fp8-recipe": "tensorwise"}
ENDS = CURRENT | {"first-last-layers-bf16": None}
PAIRS |= {
    "fp8-format": ({}, "e4m3", "hybrid"), "fp8-recipe": (FP8, "delayed", "tensorwise"), "fp8-margin": (FP8, "0", "4"), "fp8-amax-history-len": (WINDOW, "2", "4"),
    "fp8-amax-compute-algo": (WINDOW, "max", "most_recent"), "no-fp8-wgrad": (FP8, True, UNSET), "disable-fp8-wgrad": (FP8, True, UNSET), "first-last-layers-bf16": (CURRENT, True, UNSET),
    "num-layers-at-start-in-bf16": (ENDS, "0", "1"), "num-layers-at-end-in-bf16": (ENDS, "0", "1"),
}
FAMILY = ("family", "decoder-seq-length")  # the word that names the model, and what it cannot do without
# Heard of where something goes wrong, or where another flag would have it otherwise.
IN_NEED = {"non-finite", "no-check-for-nan-in-loss-and-grad", "rerun-check", "rerun-mode", "openai-gelu", "add-qkv-bias"}

# Where one of the two values ends the run: by this sentence.
REFUSES = {
    "account-for-embedding-in-pipeline-split": "3 layers cannot be shared evenly", "account-for-loss-in-pipeline-split": "3 layers cannot be shared evenly",
    "decrease-batch-size-if-needed": "global batch size 3 is not a multiple of", "mock-data": "nothing to train on: give .* or --mock-data",
    "use-precision-aware-optimizer": "--exp-avg-dtype bf16 needs --use-precision-aware-optimizer",
    "recompute-activations": "--recompute-modules needs --recompute-granularity selective",
    "tokenizer-model": "cannot open nowhere.model", "sft": r"talk\.lines\.idx: no such file", "tiktoken-pattern": r"pattern: '\(\[a-z\]\+': missing closing parenthesis",
    "tokenizer-sentencepiece-legacy": "1 special tokens, which a model takes .* with --tokenizer-sentencepiece-legacy",
    "no-load-rng": "leave --seed out, or add --no-load-rng", "use-checkpoint-args": "the number of layers is not set",
    "allow-fresh-start": "add --allow-fresh-start", "moe-use-upcycling": "is of another model: model.experts.count is 0 there and 4 here",
} | {flag: "its schedules differ: rate.peak" for flag in ("override-opt-param-scheduler", "use-checkpoint-opt-param-scheduler", "override-lr-scheduler",
                                                         "use-checkpoint-lr-scheduler")}

NOTHING_ELSE = "the page says that its values change nothing, and others are refused"
AS_IT_IS = "it asks for what is done anyway"
SAME_NUMBERS = "its effect is on who computes what and when, and the numbers are the same by design: tests/equal"
REASONS = {
    **dict.fromkeys(("moe-token-dispatcher-type", "moe-upcycling-granularity", "remote-device", "use-dataset-only",
                     "main-params-dtype", "megatron-fsdp-main-params-dtype", "spec",
                     "outer-dp-sharding-strategy", "data-impl", "non-persistent-ckpt-type", "exit-signal",
                     "moe-dispatch-fwd-dtype", "moe-combine-bwd-dtype", "mid-level-dataset-surplus"), NOTHING_ELSE),
    **dict.fromkeys(("exit-on-missing-checkpoint", "log-learning-rate-to-tensorboard", "log-loss-scale-to-tensorboard"), AS_IT_IS),
    **dict.fromkeys(("zero-reduce-bucket-size", "ddp-num-buckets", "ddp-bucket-size", "overlap-grad-reduce", "overlap-moe-expert-parallel-comm",
                     "delay-wgrad-compute", "distribute-saved-activations", "partition-activations"), SAME_NUMBERS),
    **dict.fromkeys(("cuda-graph-impl", "enable-cuda-graph", "external-cuda-graph"),
                    "launches of a GPU, whose numbers are the same: tests/cli/gpu_train_test.cpp"),
    "by-warpgroups": "kernels of a GPU: tests/cli/gpu_train_test.cpp, tests/backend/cuda_conformance.cpp",
    **dict.fromkeys(("profile", "profile-step-start", "profile-step-end", "profile-ranks", "nvtx-ranges"),
                    "what a profiler beside a GPU is shown: tests/cli/gpu_train_test.cpp, tests/train/profiler_window_test.cpp"),
    "threads": "bits do not depend on threads: tests/backend/conformance_matmul.cpp",
    "async-save": "the same files, written while training goes on: tests/train/save_test.cpp",
    "tiktoken-num-special-tokens": "a tokenizer's ids: tests/text/open_test.cpp",
    "check-weight-hash-across-dp-replicas-interval": "it is seen only on a faulty machine: tests/train/guard_test.cpp makes the fault",
    "check-replicas": "as --check-weight-hash-across-dp-replicas-interval", "test-mode": "as --check-weight-hash-across-dp-replicas-interval 1",
    "tensorboard-queue-size": "it is seen only where a disk is slower than steps: tests/report/report_test.cpp fills the queue",
    "check-for-spiky-loss": "a loss that jumps tenfold takes a hundred steps before it: tests/train/refused_test.cpp",
    **dict.fromkeys(("tokenizer-sentencepiece-ignore-extra-whitespaces", "no-tokenizer-sentencepiece-ignore-extra-whitespaces",
                     "disable-tokenizer-sentencepiece-ignore-extra-whitespaces"), "a tokenizer's text: tests/text/sentencepiece_test.cpp"),
    "tokenizer-hf-no-include-special-tokens": "a tokenizer's text: tests/text/huggingface_test.cpp",
    "null-tokenizer-pad-id": "padding that a sample of this length has not: tests/text/open_test.cpp",
    "allow-ambiguous-pad-tokens": "a padding id that is another token's too: tests/train/run_data_test.cpp",
    **dict.fromkeys(("no-use-tokenizer-model-from-checkpoint-args", "disable-use-tokenizer-model-from-checkpoint-args"),
                    "a checkpoint's tokenizer: tests/train/keep_tokenizer_test.cpp"),
    "fim-no-prefix": "made-up text begins with nothing in particular: tests/data/fim_test.cpp", "fim-pad-token": "samples here grow: tests/data/fim_test.cpp",
}


@functools.cache
def page_of(weft):
    return subprocess.run([weft, "help", "flags"], capture_output=True, text=True, check=True).stdout


def flags_of(weft):
    return re.findall(r"^\| `--([\w-]+)[^`]*` \| honored", page_of(weft), re.M)


def words_of(settings):
    out = []
    for flag, value in settings.items():
        if value is UNSET or flag == "family":
            continue
        out.append("--" + flag)
        out += value if isinstance(value, list) else [] if value in (None, True) else [value]
    return out


TIMES = re.compile(r"\[\d{4}-[^]]*\]|elapsed time per iteration \(ms\): [\d.]+|throughput[^|]*|\(min, max\).*|: \([\d.]+, [\d.]+\)|rank +\d+: [\d.]+|[\d.]+ (ms|s)\b")


def seen(weft, settings, inputs):
    """Everything about a run that is not a time."""
    with tempfile.TemporaryDirectory() as folder:
        for file in inputs:
            (pathlib.Path(folder) / file.name).symlink_to(file)
        done = subprocess.run([weft, "train", settings.get("family", "gpt"), *words_of(BASE | settings)], cwd=folder, capture_output=True, text=True, timeout=120)
        lines = []
        for log in sorted(pathlib.Path(folder).glob("*.jsonl")):
            for line in log.read_text().splitlines():
                lines.append({k: v for k, v in json.loads(line).items() if k not in ("milliseconds", "tokens_per_second", "teraflops_per_second")}
                             | {"keys": sorted(json.loads(line))})
        files = [re.sub(r"events\..*", "events", str(f.relative_to(folder))) + f" {f.stat().st_size if 'facts' not in f.name else 0}"
                 for f in sorted(pathlib.Path(folder).rglob("*")) if f.is_file() and not f.is_symlink() and f.suffix != ".jsonl"]
        files += [f"{f.parent.name} seed {json.loads(f.read_text()).get('run', {}).get('seed')}" for f in sorted(pathlib.Path(folder).rglob("facts.json"))]
        said = sorted(TIMES.sub("", l) for l in done.stderr.splitlines() if not l.startswith("no effect here"))  # two threads say them
        names = sorted(f.name for f in pathlib.Path(folder).iterdir() if not f.is_symlink())
        return dict(status=done.returncode, lines=lines, files=files, names=names, said=said, out=done.stdout), done


def make_conversations(folder):
    """A byte a token, a template, and lines that say something."""
    letters = folder / "letters"
    letters.mkdir()
    marks = ["<unk>", "<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_233>", "<|im_start|>", "<|im_end|>"]
    words = {token: i for i, token in enumerate([chr(c) for c in range(33, 127)] + ["\u0120", "\u010a"] + marks)}
    (letters / "tokenizer.json").write_text(json.dumps({
        "model": {"type": "BPE", "vocab": words, "merges": []}, "added_tokens": [{"content": m, "special": True, "id": words[m]} for m in marks],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"}}))
    (letters / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>", "unk_token": "<unk>"}')
    (letters / "chat_template.jinja").write_text(
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}")
    (folder / "talk.lines").write_text("".join(json.dumps({"messages": [{"role": "user", "content": f"{i} and {i}?"}, {"role": "assistant", "content": str(2 * i)}]})
                                               + "\n" for i in range(40)))


def make_inputs(weft, folder):
    words = "the quick brown fox jumps over a lazy dog and then some more of it all".split()
    for name, step, count in (("corpus", 1, 400), ("other", 3, 400), ("small", 1, 3)):
        text = "".join(json.dumps({"text": " ".join(words[(i * step + k) % len(words)] for k in range(3 + i % 17))}) + "\n" for i in range(count))
        (folder / f"{name}.txt").write_text(text)
        subprocess.run([weft, "preprocess", "--input", str(folder / f"{name}.txt"), "--output-prefix", str(folder / name), "--tokenizer-type",
                        "ByteLevelTokenizer", "--append-eod"], check=True, capture_output=True)
        for suffix in ("bin", "idx"):
            next(folder.glob(f"{name}_*.{suffix}")).rename(folder / f"{name}.{suffix}")
    (folder / "ds.json").write_text('{"gradient_clipping": 0.01}')
    (folder / "paths.txt").write_text("corpus")
    (folder / "paths2.txt").write_text("other")
    (folder / "splits.json").write_text('{"train": ["corpus"], "valid": ["corpus"], "test": ["corpus"]}')
    (folder / "splits2.json").write_text('{"train": ["other"], "valid": ["corpus"], "test": ["corpus"]}')
    (folder / "identity.json").write_text("{}")
    (folder / "empty").mkdir()
    vocabulary = json.loads((TEXT / "toy_bpe_vocab.json").read_text())
    (folder / "longer.json").write_text(json.dumps(vocabulary | {"more": max(vocabulary.values()) + 1}))
    (folder / "shorter.txt").write_text("\n".join((TEXT / "toy_bpe_merges.txt").read_text().splitlines()[:2]))
    (folder / "ranks.tiktoken").write_text("".join(f"{base64.b64encode(bytes([b])).decode()} {b}\n" for b in range(256)))
    make_conversations(folder)
    subprocess.run([weft, "train", "gpt", *words_of(BASE | {"save": "saved", "save-interval": "2", "log-jsonl": UNSET})], cwd=folder, check=True,
                   capture_output=True)
    return [f for f in folder.iterdir() if f.suffix != ".txt" or f.name.startswith(("paths", "shorter"))]


def says_nothing_alone(weft, flag, inputs, plain):
    """What does nothing without the others that its pair needs says so, or is refused."""
    others, *values = PAIRS[flag]
    alone = {k: v for k, v in others.items() if v is UNSET or k in FAMILY}
    if alone == others or flag in IN_NEED:
        return None
    for value in values:
        run, ran = seen(weft, alone | {flag: value}, inputs)
        told = re.search(rf"^no effect here: .*--{flag}\b", ran.stderr, re.M)
        if run["status"] == 2 or told or run != plain(tuple(alone.items())):
            return None
    return f"--{flag}: alone it changes nothing, and nothing says so"


def hollow(flag, reason, page):
    """What is wrong with a reason."""
    if flag in PAIRS:
        return f"--{flag}: a pair of values shows that it acts, and a reason says that none can"
    if reason is NOTHING_ELSE and not re.search(rf"^\| `--{flag} .*changes? nothing", page, re.M):
        return f"--{flag}: the page does not say that it changes nothing"
    missing = [path for path in re.findall(r"tests/[\w/.]*\w", reason) if not (ROOT / path).exists()]
    return f"--{flag}: there is no {missing[0]}" if missing else None


def shows(weft, flag, inputs):
    """Whether two values come out otherwise, in runs that train; one may end, if by the right sentence."""
    others, *values = PAIRS[flag]
    (first, ran), (second, also) = (seen(weft, others | {flag: value}, inputs) for value in values)
    ended = [done for run, done in ((first, ran), (second, also)) if not run["lines"]]
    if any(not re.search(REFUSES.get(flag, "$."), done.stderr) for done in ended):
        return f"--{flag}: a run does not train: {ended[0].stderr.strip()[-300:]}"
    if len(ended) != (flag in REFUSES):
        return f"--{flag}: of its two values one ends the run: {len(ended)} do"
    return f"--{flag}: {values} come out the same" if first == second else None


def verdict(weft, flag, inputs, plain):
    if flag in REASONS:
        return hollow(flag, REASONS[flag], page_of(weft))
    if flag not in PAIRS:
        return f"--{flag}: no pair of values here shows that it acts, and no reason why none can"
    return shows(weft, flag, inputs) or says_nothing_alone(weft, flag, inputs, plain)


def main():
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--weft", type=pathlib.Path, required=True)
    asked.add_argument("--only")
    asked = asked.parse_args()
    weft = str(asked.weft.resolve())
    flags = [f for f in flags_of(weft) if asked.only in (None, f)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        inputs = make_inputs(weft, pathlib.Path(folder))
        steady = [seen(weft, TB | SAVE | {"log-throughput": None, "timing-log-level": "1"}, inputs)[0] for _ in range(3)]
        if any(run != steady[0] for run in steady):
            print("two runs of the same words come out otherwise: what is compared holds a time")
            return 1

        plain = functools.cache(lambda alone: seen(weft, dict(alone), inputs)[0])
        wrong = [v for v in pool.map(lambda flag: verdict(weft, flag, inputs, plain), flags) if v]
    unknown = sorted({*PAIRS, *REASONS, *REFUSES, *IN_NEED} - {*flags_of(weft)})
    for line in wrong:
        print(line)
    if unknown:
        print("no honored flags:", *unknown)
    print(f"{len(flags) - len(wrong)} of {len(flags)} flags act, or cannot for a reason that is given")
    return 1 if wrong or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
