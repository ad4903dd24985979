#!/usr/bin/env python3
"""What megatron-core makes of the checkpoints that weft writes for it: megatron_release.py WEFT [NAME...]. Each Hugging Face model of tests/golden/exchange that Megatron's arguments can
describe becomes a release (`weft checkpoint convert --to megatron`), megatron-core builds the model that its args say and loads it, alone and cut for two tensor-parallel ranks, and its logits
must be those that transformers gave. Needs torch and megatron-core (`make oracle` installs them)."""
import datetime, functools, importlib.util, json, multiprocessing, os, pathlib, subprocess, sys, tempfile, warnings

warnings.filterwarnings("ignore")
import torch
from torch.nn import functional as F

peers = importlib.util.spec_from_file_location("peers", pathlib.Path(__file__).parents[2] / "bench/step/peers.py")
PEERS = importlib.util.module_from_spec(peers)
peers.loader.exec_module(PEERS)

GOLDEN = pathlib.Path(__file__).parents[1] / "golden/exchange"
NAMES = ["gpt2", "llama2", "mistral", "qwen3", "glm", "nemotron", "mixtral", "qwen3_moe"]


def built(args, ranks):
    """The model that a checkpoint's args say, as Megatron-LM's pretrain_gpt.py would build it, of layers that need no Transformer Engine."""
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec
    from megatron.core.transformer import TransformerConfig
    gelu = functools.partial(F.gelu, approximate="tanh") if args.openai_gelu or args.bias_gelu_fusion else F.gelu
    activation = F.silu if args.swiglu else (lambda x: F.relu(x).square()) if args.squared_relu else gelu
    experts = dict(num_moe_experts=args.num_experts, moe_router_topk=args.moe_router_topk, moe_ffn_hidden_size=args.moe_ffn_hidden_size, moe_layer_freq=args.moe_layer_freq,
                   moe_token_dispatcher_type="allgather", moe_router_pre_softmax=args.moe_router_pre_softmax, moe_router_score_function=args.moe_router_score_function,
                   moe_shared_expert_intermediate_size=args.moe_shared_expert_intermediate_size, moe_router_load_balancing_type="none") if args.num_experts else {}
    config = TransformerConfig(
        num_layers=args.num_layers, hidden_size=args.hidden_size, num_attention_heads=args.num_attention_heads, ffn_hidden_size=args.ffn_hidden_size, kv_channels=args.kv_channels,
        num_query_groups=args.num_query_groups if args.group_query_attention else args.num_attention_heads, gated_linear_unit=args.swiglu, activation_func=activation,
        add_bias_linear=args.add_bias_linear, add_qkv_bias=args.add_qkv_bias, qk_layernorm=args.qk_layernorm, normalization=args.normalization, layernorm_epsilon=args.norm_epsilon,
        rotary_interleaved=args.rotary_interleaved, tensor_model_parallel_size=ranks, params_dtype=torch.float32,
        **PEERS.PLAIN, **experts)
    block = get_gpt_decoder_block_spec(config, use_transformer_engine=False)
    for layer in block.layer_specs:  # the norm in front of experts has its own name with Transformer Engine, which the release is made for
        moe = not hasattr(layer.submodules.mlp.submodules, "linear_fc1")
        if moe:
            layer.submodules.sharded_state_dict_keys_map = {"input_layernorm.": "self_attention.linear_qkv.layer_norm_"}
    model = GPTModel(config, block, args.padded_vocab_size, args.max_position_embeddings, share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
                     position_embedding_type=args.position_embedding_type, rotary_percent=args.rotary_percent, rotary_base=args.rotary_base, parallel_output=False,
                     seq_len_interpolation_factor=args.rotary_seq_len_interpolation_factor)
    return model.eval()


def rank(number, ranks, folder, prompt):
    sys.stderr = open(f"{folder}/said_{number}", "w")
    from megatron.core import dist_checkpointing, parallel_state, tensor_parallel
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting_{ranks}", rank=number, world_size=ranks, timeout=datetime.timedelta(minutes=5))
    parallel_state.initialize_model_parallel(ranks)
    tensor_parallel.model_parallel_cuda_manual_seed(11)
    release = pathlib.Path(folder) / (pathlib.Path(folder) / "latest_checkpointed_iteration.txt").read_text()
    args = dist_checkpointing.load_common_state_dict(str(release))["args"]
    model = built(args, ranks)
    with torch.no_grad():  # whatever is not loaded is found
        for p in model.parameters():
            p.fill_(float("nan"))
    loaded = dist_checkpointing.load(dict(model=model.sharded_state_dict()), str(release))
    model.load_state_dict(loaded["model"])
    if args.apply_layernorm_1p:  # which torch's own norms do not know
        with torch.no_grad():
            for name, p in model.named_parameters():
                if name.endswith("norm.weight"):
                    p += 1
    tokens = torch.tensor([prompt])
    mask = torch.ones(1, 1, len(prompt), len(prompt), dtype=torch.bool).triu(1)
    if args.window_size:  # of all layers here; megatron-core makes such masks on GPUs alone
        mask |= torch.ones_like(mask).tril(-args.window_size[0] - 1)
    with torch.no_grad():
        logits = model(tokens, torch.arange(len(prompt))[None], mask)[0]
    if number == 0:
        torch.save(logits, f"{folder}/logits_{ranks}")
    torch.distributed.destroy_process_group()


def apart(name, weft, folder):
    """By how much of the largest logit megatron-core's are not those of transformers; none where Megatron has no such model."""
    done = subprocess.run([weft, "checkpoint", "convert", "--to", "megatron", "--dtype", "f32", GOLDEN / name, folder], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{name}: {done.stdout}{done.stderr}")
    expected = json.loads((GOLDEN / name / "logits.json").read_text())
    theirs, worst = torch.tensor(expected["logits"]), 0.0
    for ranks in 1, 2:
        all_ranks = [multiprocessing.get_context("fork").Process(target=rank, args=(r, ranks, folder, expected["prompt"])) for r in range(ranks)]
        for one in all_ranks:
            one.start()
        for one in all_ranks:
            one.join()
        failed = [r for r, one in enumerate(all_ranks) if one.exitcode != 0]
        if failed:
            sys.exit(f"{name} under {ranks} ranks: {(folder / f'said_{failed[0]}').read_text()[-1500:]}")
        found = torch.load(folder / f"logits_{ranks}")[:, :theirs.shape[1]]
        worst = max(worst, ((found - theirs).abs().max() / theirs.abs().max()).item())
    return worst


def main():
    weft, names = sys.argv[1], sys.argv[2:] or NAMES
    torch.set_num_threads(1)
    PEERS.pretend_cuda()
    import megatron.core.models.gpt, megatron.core.transformer.moe.moe_utils as moe  # once, for all ranks
    moe.te_general_gemm = getattr(moe, "te_general_gemm", None)  # a name that it lacks where there is no Transformer Engine
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            by = apart(name, weft, pathlib.Path(folder))
        print(f"{name}: megatron-core's logits of the release differ from transformers' by {by:.3g} of the largest")
        if not by < 1e-5:
            sys.exit("which is more than rounding")


if __name__ == "__main__":
    main()
