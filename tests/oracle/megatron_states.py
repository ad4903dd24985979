#!/usr/bin/env python3
"""Checkpoints that megatron-core itself writes, with what its optimizer keeps: megatron_states.py WEFT [--cases N] [--seed S] [--family F]. Drawn GPTs, and every third time a T5, a BERT or
one of latent attention or further tokens (megatron_families.py), under drawn ranks (tensor, pipeline with
and without virtual stages, data, expert), trained on drawn gradients by the distributed optimizer, whose buckets are as small as they may be, and saved in every form: whole tensors
(fully_reshardable), flat buffers (dp_reshardable, dp_zero_gather_scatter) and a file for each rank; among them T5s, BERTs and GPTs with latent attention and further tokens. Converted by weft, all must be the same checkpoint to the bit; but for whole tensors that
megatron-core itself corrupts, which weft must refuse.
Needs torch and megatron-core (`make oracle` installs them)."""
import argparse, copy, dataclasses, datetime, functools, importlib.util, multiprocessing, os, pathlib, random, subprocess, sys, tempfile, warnings

warnings.filterwarnings("ignore")
import torch
from torch.nn import functional as F

import recipe

peers = importlib.util.spec_from_file_location("peers", pathlib.Path(__file__).parents[2] / "bench/step/peers.py")
PEERS = importlib.util.module_from_spec(peers)
peers.loader.exec_module(PEERS)

FORMS = ("fully_reshardable", "dp_reshardable", "dp_zero_gather_scatter", "torch")
STEP = 3
CANNOT = 3  # be saved: a rank has nothing of a bucket, or the gap in front of what is tied does not end with the bucket


def draw(rng, family=None):
    import megatron_families as families
    family = family or rng.choice(["gpt"] * 2 * len(families.FAMILIES) + list(families.FAMILIES))
    if family == "gpt":
        return draw_gpt(rng)
    shape = families.draw(rng, family)
    tp, pp, dp = rng.choice([(1, 1, 2), (2, 1, 1), (2, 1, 2)] + [(1, 2, 1)] * (family == "bert" and not shape["tied"]))
    shape["layers"] = max(shape["layers"], pp) // pp * pp
    return dict(family=family, shape=shape, tp=tp, pp=pp, dp=dp, vpp=None, ep=1, experts=shape.get("experts", 0), tied=shape["tied"], bf16=False, bucket=rng.choice([None, 400, 2500]),
                sequence=shape["sequence"])


def draw_gpt(rng):
    heads = rng.choice([2, 4])
    groups = rng.choice([g for g in (2, heads) if heads % g == 0])
    tp, pp, dp = rng.choice([(1, 1, 2), (2, 1, 2), (2, 2, 1), (1, 2, 2), (2, 2, 2), (1, 4, 1)])
    vpp = rng.choice([None, 2]) if pp > 1 else None
    experts = rng.choice([0, 0, 4])
    layers = pp * (vpp or 1) * rng.choice([1, 2])
    return dict(family="gpt", heads=heads, groups=groups, width=heads * rng.choice([4, 6]), inner=rng.choice([10, 24]), words=rng.choice([24, 40]), sequence=rng.choice([6, 8]), layers=layers,
                tp=tp, pp=pp, dp=dp, vpp=vpp, experts=experts, ep=rng.choice([1, 2]) if experts and dp == 2 else 1, frequency=rng.choice([1, 2]), shared=rng.choice([None, 12]),
                gated=rng.random() < 0.5, biases=not experts and rng.random() < 0.5, normed=rng.random() < 0.5, rms=rng.random() < 0.5, tied=rng.random() < 0.5, bf16=rng.random() < 0.5,
                bucket=rng.choice([None, 1 if dp == 1 else 400, 700, 2500]), engine=rng.random() < 0.5, says=rng.choice(["local", "transformer_engine"]))


def arguments(how):
    """As Megatron-LM's own are named."""
    if how["family"] != "gpt":
        import megatron_families as families
        out = families.arguments(how["shape"] | dict(form="dp_reshardable"))
        layout = dict(tensor_model_parallel_size=how["tp"], pipeline_model_parallel_size=how["pp"], expert_tensor_parallel_size=how["tp"], data_parallel_size=how["dp"],
                      overlap_grad_reduce=how["bucket"] is not None, ddp_bucket_size=how["bucket"])
        return argparse.Namespace(**vars(out) | layout)
    return argparse.Namespace(
        num_layers=how["layers"], hidden_size=how["width"], ffn_hidden_size=how["inner"], num_attention_heads=how["heads"], num_query_groups=how["groups"], group_query_attention=True,
        kv_channels=how["width"] // how["heads"], seq_length=how["sequence"], max_position_embeddings=how["sequence"], position_embedding_type="learned_absolute",
        normalization="RMSNorm" if how["rms"] else "LayerNorm", norm_epsilon=1e-5, swiglu=how["gated"], add_bias_linear=how["biases"], qk_layernorm=how["normed"],
        bias_gelu_fusion=True, untie_embeddings_and_output_weights=not how["tied"], num_experts=how["experts"] or None, moe_layer_freq=how["frequency"], moe_ffn_hidden_size=how["inner"], moe_router_topk=2,
        moe_shared_expert_intermediate_size=how["shared"] if how["experts"] else None, moe_router_load_balancing_type="aux_loss", moe_aux_loss_coeff=0.0, moe_grouped_gemm=False,
        padded_vocab_size=how["words"], make_vocab_size_divisible_by=8, bf16=how["bf16"], params_dtype=torch.bfloat16 if how["bf16"] else torch.float32, transformer_impl=how["says"],
        tensor_model_parallel_size=how["tp"], pipeline_model_parallel_size=how["pp"], virtual_pipeline_model_parallel_size=how["vpp"], expert_model_parallel_size=how["ep"],
        expert_tensor_parallel_size=how["tp"], data_parallel_size=how["dp"], overlap_grad_reduce=how["bucket"] is not None, ddp_bucket_size=how["bucket"], use_distributed_optimizer=True,
        optimizer="adam", adam_beta1=0.9, adam_beta2=0.95, adam_eps=1e-8, weight_decay=0.1, clip_grad=1.0, seed=7, consumed_train_samples=12, skipped_train_samples=0, consumed_valid_samples=0,
        global_batch_size=4, micro_batch_size=1, train_iters=10)


def fused(layer):
    """A layer as Transformer Engine's modules have it: the norm's parameters are the linear layer's, in front of its own. What it computes is asked of nobody."""
    from megatron.core.tensor_parallel import ColumnParallelLinear
    from megatron.core.transformer.identity_op import IdentityOp

    class Fused(ColumnParallelLinear):
        def __init__(self, input_size, output_size, *, config, **more):
            super().__init__(input_size, output_size, config=config, **more)
            own = [(name, self._parameters.pop(name)) for name in list(self._parameters)]
            for name in ("weight",) if config.normalization == "RMSNorm" else ("weight", "bias"):
                self.register_parameter("layer_norm_" + name, torch.nn.Parameter(torch.full((input_size,), float(name == "weight"), dtype=config.params_dtype)))
            for name, p in own:
                self.register_parameter(name, p)

    layer = copy.deepcopy(layer)
    layer.submodules.sharded_state_dict_keys_map = {}
    layer.submodules.input_layernorm = IdentityOp
    layer.submodules.self_attention.submodules.linear_qkv = Fused
    if hasattr(layer.submodules.mlp.submodules, "linear_fc1"):  # experts have a norm in front of them
        layer.submodules.pre_mlp_layernorm = IdentityOp
        layer.submodules.mlp.submodules.linear_fc1 = Fused
    return layer


def held(how, config, bucket, model, stage=0):
    """A stage in Megatron's hands."""
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
    ddp = DistributedDataParallelConfig(grad_reduce_in_fp32=True, overlap_grad_reduce=bucket is not None, use_distributed_optimizer=True, bucket_size=bucket)
    with torch.no_grad():  # gains of one and biases of zero could change places, and nobody would see it
        for name, p in model.named_parameters():
            if p.dim() == 1:
                p += 0.05 * torch.randn(p.shape, generator=torch.Generator().manual_seed(hash(name) % 2**31))
    return lambda model: DistributedDataParallel(config, ddp, model, disable_bucketing=stage > 0)


def built(how, bucket):
    """A rank's stages: in Megatron's hands, and themselves."""
    from megatron.core import parallel_state as state
    if how["family"] != "gpt":
        import megatron_families as families
        model, config = families.built(how["shape"], state.is_pipeline_first_stage(), state.is_pipeline_last_stage(), tensor_model_parallel_size=how["tp"],
                                       pipeline_model_parallel_size=how["pp"], pipeline_dtype=torch.float32)
        return [held(how, config, bucket, model)(model)], [model]
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec, get_gpt_layer_local_spec
    from megatron.core.transformer import TransformerConfig
    from megatron.core.transformer.module import Float16Module
    half = torch.bfloat16 if how["bf16"] else torch.float32
    experts = dict(num_moe_experts=how["experts"], moe_router_topk=2, moe_ffn_hidden_size=how["inner"], moe_layer_freq=how["frequency"], moe_token_dispatcher_type="alltoall",
                   moe_shared_expert_intermediate_size=how["shared"], expert_model_parallel_size=how["ep"], expert_tensor_parallel_size=how["tp"]) if how["experts"] else {}
    config = TransformerConfig(
        num_layers=how["layers"], hidden_size=how["width"], num_attention_heads=how["heads"], num_query_groups=how["groups"], ffn_hidden_size=how["inner"], gated_linear_unit=how["gated"],
        activation_func=F.silu if how["gated"] else functools.partial(F.gelu, approximate="tanh"), add_bias_linear=how["biases"], qk_layernorm=how["normed"],
        normalization="RMSNorm" if how["rms"] else "LayerNorm", tensor_model_parallel_size=how["tp"], pipeline_model_parallel_size=how["pp"],
        virtual_pipeline_model_parallel_size=how["vpp"], bf16=how["bf16"], params_dtype=half, pipeline_dtype=half, **PEERS.PLAIN, **experts)
    stages, own = [], []
    for stage in range(how["vpp"] or 1):
        virtual = dict(ignore_virtual=False, vp_stage=stage) if how["vpp"] else {}
        number = stage if how["vpp"] else None
        layers = get_gpt_decoder_block_spec(config, use_transformer_engine=False, vp_stage=number) if how["experts"] else \
            get_gpt_layer_local_spec(qk_layernorm=how["normed"], normalization=config.normalization)
        if how["engine"]:
            specs = getattr(layers, "layer_specs", None)
            layers = fused(layers) if specs is None else dataclasses.replace(layers, layer_specs=[fused(spec) for spec in specs])
        model = GPTModel(config, layers, how["words"], how["sequence"], pre_process=state.is_pipeline_first_stage(**virtual), post_process=state.is_pipeline_last_stage(**virtual),
                         share_embeddings_and_output_weights=how["tied"], position_embedding_type="learned_absolute", vp_stage=number)
        own.append(model)
        hold = held(how, config, bucket, model, stage)
        if how["bf16"]:
            model = Float16Module(config, model)
        stages.append(hold(model))
    return stages, own


def train(how, stages):
    """Steps of the distributed optimizer on gradients that are drawn: the same in all ranks that hold the same."""
    from megatron.core import parallel_state as state
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    optimizer = get_megatron_optimizer(OptimizerConfig(
        optimizer="adam", lr=0.01, min_lr=0.001, weight_decay=0.1, adam_beta1=0.9, adam_beta2=0.95, bf16=how["bf16"], params_dtype=torch.bfloat16 if how["bf16"] else torch.float32,
        use_distributed_optimizer=True, clip_grad=0.0), stages)
    draws = torch.Generator()
    for step in range(STEP):
        for number, stage in enumerate(stages):
            for name, p in stage.named_parameters():
                shared = getattr(p, "shared_embedding", False)
                cut = state.get_tensor_model_parallel_rank() if getattr(p, "tensor_model_parallel", False) else 0
                expert = 0 if getattr(p, "allreduce", True) else state.get_expert_model_parallel_rank()
                draws.manual_seed(hash((step, cut, expert, "words" if shared else (name, number, state.get_pipeline_model_parallel_rank()))) % 2**31)
                p.main_grad.copy_(torch.randn(p.shape, generator=draws))
        optimizer.step()
    return optimizer


def save(how, folder, forms, stages, optimizer):
    from megatron.core import dist_checkpointing, parallel_state as state
    names = ["model"] if len(stages) == 1 else [f"model{i}" for i in range(len(stages))]
    common = dict(args=arguments(how), checkpoint_version=3.0, iteration=STEP, num_floating_point_operations_so_far=0.0)
    for form in (f for f in forms if f != "torch"):
        where = folder / form / f"iter_{STEP:07}"
        meta = dict(distrib_optim_sharding_type=form, singleton_local_shards=False, chained_optim_avoid_prefix=True, distrib_optim_fully_reshardable_mem_efficient=False)
        if torch.distributed.get_rank() == 0:
            where.mkdir(parents=True)
        torch.distributed.barrier()
        saved = dict(common, content_metadata=meta, **{name: stage.sharded_state_dict(metadata=meta) for name, stage in zip(names, stages)})
        saved["optimizer"] = optimizer.sharded_state_dict({name: saved[name] for name in names} if len(names) > 1 else saved["model"], metadata=meta)
        dist_checkpointing.save(saved, str(where), content_metadata=meta)
    if "torch" not in forms:
        return
    where = folder / "torch" / f"iter_{STEP:07}" / ("mp_rank_%02d" % state.get_tensor_model_parallel_rank() + ("_%03d" % state.get_pipeline_model_parallel_rank() if how["pp"] > 1 else "") +
                                                 ("_%03d" % state.get_expert_model_parallel_rank() if how["ep"] > 1 else ""))
    first = state.get_expert_data_parallel_rank() == 0 if how["experts"] else state.get_data_parallel_rank() == 0
    where.mkdir(parents=True, exist_ok=True)
    if first:
        torch.save(dict(common, optimizer=optimizer.state_dict(), **{name: stage.state_dict_for_save_checkpoint() for name, stage in zip(names, stages)}), where / "model_optim_rng.pt")
    optimizer.save_parameter_state(str(where / "distrib_optim.pt"))
    torch.distributed.barrier()


def pretend_cuda():
    PEERS.pretend_cuda()
    PEERS.pretend_streams()
    torch.Tensor.cuda = lambda self, *a, **k: self
    torch.cuda.synchronize = lambda *a: None
    told = torch.Tensor.type
    torch.Tensor.type = lambda self, *a, **k: told(self, *a, **k) if a or k else told(self).replace("torch.", "torch.cuda.", 1)
    for name in ("tensor", "zeros", "ones", "empty", "full"):
        made = getattr(torch, name)
        setattr(torch, name, lambda *a, made=made, **k: made(*a, **{key: "cpu" if key == "device" else value for key, value in k.items()}))


def rank(number, how, folder):
    sys.stderr = open(f"{folder}/said_{number}", "w")
    from megatron.core import parallel_state, tensor_parallel
    world = how["tp"] * how["pp"] * how["dp"]
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=number, world_size=world, timeout=datetime.timedelta(minutes=5))
    parallel_state.initialize_model_parallel(how["tp"], how["pp"], how["vpp"], expert_model_parallel_size=how["ep"], expert_tensor_parallel_size=how["tp"])
    tensor_parallel.model_parallel_cuda_manual_seed(11)
    # megatron-core itself says of whole tensors out of several buckets that they may be corrupted, and they are
    for bucket, forms in (None, FORMS[:1]), (how["bucket"], FORMS[1:]):
        torch.manual_seed(11)
        stages, own = built(how, bucket)
        try:
            save(how, pathlib.Path(folder), forms, own, train(how, stages))
        except Exception as e:
            if "empty bucket" not in str(e) and "Failed to validate global plan" not in str(e):
                raise
            os._exit(CANNOT)
    torch.distributed.destroy_process_group()


def compare(weft, folder, seed, family):
    how = draw(random.Random(seed), family)
    print(f"seed {seed}: {how}", flush=True)
    ranks = [multiprocessing.get_context("fork").Process(target=rank, args=(r, how, folder)) for r in range(how["tp"] * how["pp"] * how["dp"])]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()
    if any(one.exitcode == CANNOT for one in ranks):
        print("  megatron-core cannot save it")
        return False
    if any(one.exitcode != 0 for one in ranks):
        failed = next(r for r, one in enumerate(ranks) if one.exitcode != 0)
        sys.exit((folder / f"said_{failed}").read_text()[-1500:] + "\nmegatron-core could not make it")
    made = {}
    for form in FORMS:
        run = folder / ("weft_" + form)
        done = subprocess.run([weft, "checkpoint", "convert", folder / form / f"iter_{STEP:07}", run], capture_output=True, text=True)
        if form == FORMS[0] and how["tied"] and how["pp"] > 1 and "are other numbers than its weights were rounded from" in done.stderr:
            print("  whole tensors are corrupted, and refused")  # what is tied has a bucket for itself
            continue
        if done.returncode != 0 or f"step_{STEP:08}" not in done.stdout:
            sys.exit(f"{form}: {done.stdout}{done.stderr}")
        made[form] = (run / f"step_{STEP:08}" / "rank_00000.safetensors").read_bytes()
        first = next(iter(made))
        if made[form] != made[first]:
            sys.exit(f"{form} gives other numbers than {first}")
    return True


def main():
    words = recipe.words(__doc__)
    words.add_argument("--family")
    args = words.parse_args()
    torch.set_num_threads(1)
    pretend_cuda()
    import megatron.core.models.gpt, megatron.core.optimizer  # once, for all ranks
    with tempfile.TemporaryDirectory() as folder:
        made, seed = 0, args.seed
        while made < args.cases:
            own = pathlib.Path(folder) / str(seed)
            own.mkdir()
            made += compare(args.weft, own, seed, args.family)
            seed += 1
    print(f"{made} checkpoints of megatron-core in {len(FORMS)} forms: each form gives the same one of weft")


if __name__ == "__main__":
    main()
