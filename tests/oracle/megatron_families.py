#!/usr/bin/env python3
"""Runs of megatron-core's other models that go on in weft: megatron_families.py WEFT [--cases N] [--seed S] [--family F] [--write FOLDER]. Drawn T5s, BERTs and GPTs with latent attention, further
tokens or both are trained some steps by megatron-core's own optimizer and saved; weft converts them and goes on, and so does megatron-core: losses and gradient norms must agree. With
--write FOLDER then holds golden runs of tests/golden/exchange/megatron.
Needs torch and megatron-core (`make oracle` installs them)."""
import argparse, json, math, pathlib, pickle, random, sys, warnings

warnings.filterwarnings("ignore")
import torch

import megatron_states as states, recipe, train_encoders as encoders
from recipe import run

BEFORE, AFTER, GLOBAL = 4, 3, 4  # steps and samples; each sample is a microbatch
PEAK, FLOOR, WARM, DECAY = 2e-3, 2e-4, 2, 10
FAMILIES = ("t5", "bert", "latent", "further")
FORMS = {"dp_reshardable": True, "dp_zero_gather_scatter": True, "fully_reshardable": True, "torch": True, "plain": False}  # and whether the optimizer is the distributed one


class PlainAttention(torch.nn.Module):
    """What latent attention leaves to Transformer Engine: heads whose values are not as wide as their keys."""

    def __init__(self, config, layer_number, attn_mask_type, attention_type, softmax_scale=None, **more):
        super().__init__()
        self.scale = softmax_scale

    def forward(self, query, key, value, mask, **more):
        scores = torch.einsum("sbhd,tbhd->bhst", query, key) * self.scale
        return torch.einsum("bhst,tbhd->sbhd", scores.masked_fill(mask, -1e9).softmax(-1), value).flatten(2)


def draw(rng, family):
    heads = rng.choice([2, 4])
    shape = dict(family=family, heads=heads, width=heads * rng.choice([4, 6]), inner=rng.choice([12, 24]), layers=rng.choice([2, 3]), words=rng.choice([40, 48]), sequence=rng.choice([16, 24]),
                 tied=rng.random() < 0.5, norm=rng.choice(["LayerNorm", "RMSNorm"]), gate=rng.choice([None, "swiglu", "geglu"]), fused=rng.random() < 0.5, biases=rng.random() < 0.6, behind=False,
                 form=rng.choice(list(FORMS)))
    if family == "bert":
        return shape | dict(binary=rng.random() < 0.6, positions="learned_absolute", words=rng.choice([400, 600]))
    if family == "t5":
        buckets = rng.choice([8, 16])
        return shape | dict(decoder_layers=shape["layers"], decoder_sequence=rng.choice([12, 16]), buckets=buckets, farthest=buckets * rng.choice([1, 2]),
                            positions=rng.choice(["learned_absolute", "rope", "relative"]))
    return shape | gpt(rng, family)


def gpt(rng, family):
    experts = rng.choice([0, 4])
    out = dict(experts=experts, dense=rng.choice([0, 1]), biases=not experts and rng.random() < 0.5, positions="rope", latent=family == "latent" or rng.random() < 0.3, further=0)
    if family == "further":
        out |= dict(further=rng.choice([1, 2]), factor=rng.choice([0.1, 0.3]))
    if out["latent"]:
        out |= dict(query_rank=rng.choice([None, 6]), rank=rng.choice([6, 8]), plain=rng.choice([4, 6]), turned=rng.choice([2, 4]), value=rng.choice([4, 6]), normed=rng.random() < 0.7,
                    stretched=rng.choice([1.0, 4.0]), mscale_all=rng.choice([0.0, 0.7]), kind="yarn")
        if out["stretched"] == 1:
            out["kind"] = rng.choice(["yarn", "rope"])
    return out


def built(shape, first=True, last=True, **layout):
    """megatron-core's model, or a stage of it, and its settings."""
    if shape["family"] in ("bert", "t5"):
        model = encoders.usual_megatron(shape, first, last, **layout)
        return model, model.config
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec, get_gpt_mtp_block_spec
    from megatron.core.transformer import TransformerConfig, multi_latent_attention
    from megatron.core.transformer.transformer_config import MLATransformerConfig
    multi_latent_attention.HAVE_TE = False  # as it is where Transformer Engine is missing; 0.16.1 looks for it elsewhere
    more = dict(layout)
    if shape["experts"]:
        more |= dict(num_moe_experts=shape["experts"], moe_router_topk=2, moe_ffn_hidden_size=shape["inner"], moe_token_dispatcher_type="alltoall",
                     moe_layer_freq=[int(i >= shape["dense"]) for i in range(shape["layers"])], moe_router_load_balancing_type="none")
    if shape["latent"]:
        more |= dict(q_lora_rank=shape["query_rank"], kv_lora_rank=shape["rank"], qk_head_dim=shape["plain"], qk_pos_emb_head_dim=shape["turned"], v_head_dim=shape["value"],
                     qk_layernorm=shape["normed"], rope_type=shape["kind"], rotary_scaling_factor=shape["stretched"], original_max_position_embeddings=4096, mscale_all_dim=shape["mscale_all"])
    if shape["further"]:
        more |= dict(mtp_num_layers=shape["further"], mtp_loss_scaling_factor=shape["factor"])
    config = (MLATransformerConfig if shape["latent"] else TransformerConfig)(
        num_layers=shape["layers"], hidden_size=shape["width"], num_attention_heads=shape["heads"], ffn_hidden_size=shape["inner"], gated_linear_unit=shape["gate"] is not None,
        activation_func=encoders.activation(shape), normalization=shape["norm"], add_bias_linear=shape["biases"], layernorm_epsilon=shape.get("epsilon", 1e-5), **states.PEERS.PLAIN, **more)
    block = get_gpt_decoder_block_spec(config, use_transformer_engine=False, normalization=shape["norm"])
    for layer in block.layer_specs if shape["latent"] else ():
        layer.submodules.self_attention.submodules.core_attention = PlainAttention
    further = get_gpt_mtp_block_spec(config, block, use_transformer_engine=False) if shape["further"] else None
    return GPTModel(config, block, shape["words"], shape["sequence"], pre_process=first, post_process=last, share_embeddings_and_output_weights=shape["tied"], position_embedding_type="rope", mtp_block_spec=further), config


def arguments(shape):
    """As Megatron-LM's own are named."""
    distributed = FORMS[shape["form"]]
    out = dict(
        num_layers=shape["layers"], hidden_size=shape["width"], ffn_hidden_size=shape["inner"], num_attention_heads=shape["heads"], num_query_groups=1, group_query_attention=False,
        kv_channels=shape["width"] // shape["heads"], seq_length=shape["sequence"], max_position_embeddings=max(shape["sequence"], shape.get("decoder_sequence", 0)),
        position_embedding_type=shape["positions"], normalization=shape["norm"], norm_epsilon=shape.get("epsilon", 1e-5), swiglu=shape["gate"] == "swiglu", geglu=shape["gate"] == "geglu",
        bias_gelu_fusion=shape["fused"], add_bias_linear=shape["biases"], untie_embeddings_and_output_weights=not shape["tied"], padded_vocab_size=shape["words"],
        make_vocab_size_divisible_by=8, hidden_dropout=0.0, attention_dropout=0.0, params_dtype=torch.float32, transformer_impl="local", tensor_model_parallel_size=1,
        pipeline_model_parallel_size=1, expert_model_parallel_size=1, expert_tensor_parallel_size=1, data_parallel_size=1, use_distributed_optimizer=distributed, optimizer="adam",
        adam_beta1=0.9, adam_beta2=0.95, adam_eps=1e-8, weight_decay=0.1, clip_grad=1.0, seed=77123, consumed_train_samples=BEFORE * GLOBAL, skipped_train_samples=0,
        consumed_valid_samples=0, global_batch_size=GLOBAL, micro_batch_size=1, train_iters=BEFORE + AFTER)
    if shape["family"] == "t5":
        out |= dict(encoder_num_layers=shape["layers"], encoder_seq_length=shape["sequence"], decoder_seq_length=shape["decoder_sequence"],
                    relative_attention_num_buckets=shape["buckets"], relative_attention_max_distance=shape["farthest"])
    if shape["family"] == "bert":
        out |= dict(bert_binary_head=shape["binary"])
    if shape.get("experts"):
        out |= dict(num_experts=shape["experts"], moe_layer_freq=[int(i >= shape["dense"]) for i in range(shape["layers"])], moe_ffn_hidden_size=shape["inner"], moe_router_topk=2,
                    moe_router_load_balancing_type="none", moe_aux_loss_coeff=0.0)
    if shape.get("latent"):
        out |= dict(multi_latent_attention=True, q_lora_rank=shape["query_rank"], kv_lora_rank=shape["rank"], qk_head_dim=shape["plain"], qk_pos_emb_head_dim=shape["turned"],
                    v_head_dim=shape["value"], qk_layernorm=shape["normed"], rope_type=shape["kind"], rotary_scaling_factor=shape["stretched"], mscale=1.0, mscale_all_dim=shape["mscale_all"])
    if shape.get("further"):
        out |= dict(mtp_num_layers=shape["further"], mtp_loss_scaling_factor=shape["factor"])
    return argparse.Namespace(**out)


def kind_of(shape):
    return shape["family"] if shape["family"] in ("bert", "t5") else "gpt"


def samples_of(weft, shape):
    flags = ["--num-layers", 2, "--hidden-size", 8, "--num-attention-heads", 2, "--max-position-embeddings", 64, "--seq-length", shape["sequence"], "--vocab-size", shape["words"],
             "--make-vocab-size-divisible-by", 1, *data_flags(shape)]
    if shape["family"] == "t5":
        flags += ["--decoder-seq-length", shape["decoder_sequence"]]
    if shape["family"] == "bert" and not shape["binary"]:
        flags += ["--bert-no-binary-head"]
    lines = run(weft, "data", "sample", kind_of(shape), "--index", 0, "--count", (BEFORE + AFTER) * GLOBAL, "--json", *flags).splitlines()
    return [json.loads(line) for line in lines]


def data_flags(shape):
    return ["--mock-data", "--micro-batch-size", 1, "--global-batch-size", GLOBAL, "--train-iters", BEFORE + AFTER, "--eval-iters", 0, "--lr", PEAK, "--min-lr", FLOOR,
            "--lr-decay-style", "cosine", "--lr-warmup-iters", WARM, "--lr-decay-iters", DECAY, "--weight-decay", 0.1, "--clip-grad", 1, "--adam-beta2", 0.95, "--seed", 77123]


def loss_of(model, shape, x):
    """Of a microbatch: what is differentiated; and what is told, with what divides it."""
    if shape["family"] in ("bert", "t5"):
        loss = encoders.loss_of(model, shape)(x)
        return loss, loss.item() * (x["loss_mask"].sum().item() if shape["family"] == "t5" else 1), x["loss_mask"].sum().item() if shape["family"] == "t5" else 1
    length = x["tokens"].shape[1]
    losses = model(x["tokens"], torch.arange(length)[None], torch.ones(1, 1, length, length, dtype=torch.bool).triu(1), labels=x["labels"])
    return losses.mean(), losses.mean().item(), 1


def rate_of(step):
    if step < WARM:
        return PEAK * step / WARM
    return FLOOR + (PEAK - FLOOR) * 0.5 * (1 + math.cos(math.pi * (step - WARM) / (DECAY - WARM)))


class Trainer:
    """A model in the hands of megatron-core's optimizer."""

    def __init__(self, shape):
        from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
        from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
        self.shape = shape
        self.model, config = built(shape)
        draws = torch.Generator().manual_seed(5)
        with torch.no_grad():  # so that no gain is one and no bias zero, and logits are far from each other
            for p in self.model.parameters():
                p += (0.1 if p.dim() == 1 else 0.08) * torch.randn(p.shape, generator=draws)
        distributed = FORMS[shape["form"]]
        self.held = DistributedDataParallel(config, DistributedDataParallelConfig(grad_reduce_in_fp32=True, overlap_grad_reduce=False, use_distributed_optimizer=distributed), self.model)
        self.optimizer = get_megatron_optimizer(OptimizerConfig(
            optimizer="adam", lr=PEAK, min_lr=FLOOR, weight_decay=0.1, adam_beta1=0.9, adam_beta2=0.95, use_distributed_optimizer=distributed, clip_grad=1.0), [self.held])

    def step(self, number, rows):
        from megatron.core.transformer.multi_token_prediction import MTPLossAutoScaler, MTPLossLoggingHelper
        MTPLossLoggingHelper.tracker.clear()  # it is as long as the first model that wrote to it
        MTPLossAutoScaler.set_loss_scale(torch.tensor(1 / GLOBAL))
        self.held.zero_grad_buffer()
        self.optimizer.zero_grad()
        for group in self.optimizer.param_groups:
            group["lr"], group["weight_decay"] = rate_of(number), 0.1 * group["wd_mult"]
        told = count = 0
        for row in rows[number * GLOBAL:(number + 1) * GLOBAL]:
            loss, some, of = loss_of(self.held, self.shape, {key: torch.tensor(value)[None] for key, value in row.items() if isinstance(value, list)})
            (loss / GLOBAL).backward()
            told, count = told + some, count + of
        self.held.finish_grad_sync()
        _, norm, _ = self.optimizer.step()
        return dict(loss_reported=told / count, grad_norm=float(norm), lr=rate_of(number))

    def save(self, folder):
        from megatron.core import dist_checkpointing
        where = folder / f"iter_{BEFORE:07}"
        where.mkdir(parents=True)
        (folder / "latest_checkpointed_iteration.txt").write_text(str(BEFORE))
        common = dict(args=arguments(self.shape), checkpoint_version=3.0, iteration=BEFORE)
        if self.shape["form"] == "torch":
            rank = where / "mp_rank_00"
            rank.mkdir()
            torch.save(dict(common, optimizer=self.optimizer.state_dict(), model=self.model.state_dict_for_save_checkpoint()), rank / "model_optim_rng.pt")
            self.optimizer.save_parameter_state(str(rank / "distrib_optim.pt"))
            return
        meta = dict(singleton_local_shards=False, chained_optim_avoid_prefix=True, distrib_optim_fully_reshardable_mem_efficient=False)
        if FORMS[self.shape["form"]]:
            meta["distrib_optim_sharding_type"] = self.shape["form"]
        saved = dict(common, content_metadata=meta, model=self.model.sharded_state_dict(metadata=meta))
        saved["optimizer"] = self.optimizer.sharded_state_dict(saved["model"], metadata=meta)
        dist_checkpointing.save(saved, str(where), content_metadata=meta)


GOLDEN = {
    "t5": dict(family="t5", heads=2, width=8, inner=12, layers=2, decoder_layers=2, words=40, sequence=16, decoder_sequence=12, tied=True, norm="LayerNorm", gate=None, fused=True,
               biases=True, behind=False, positions="relative", buckets=8, farthest=16, form="dp_zero_gather_scatter"),
    "bert": dict(family="bert", heads=2, width=8, inner=12, layers=2, words=160, sequence=24, tied=True, norm="LayerNorm", gate=None, fused=False, biases=True, behind=False,
                 binary=True, positions="learned_absolute", form="dp_zero_gather_scatter"),
    "latent": dict(family="latent", heads=2, width=8, inner=12, layers=2, words=40, sequence=16, tied=False, norm="RMSNorm", gate="swiglu", fused=True, biases=False, behind=False,
                   positions="rope", experts=0, latent=True, further=0, query_rank=6, rank=6, plain=4, turned=4, value=6, normed=True, stretched=4.0, mscale_all=0.7,
                   kind="yarn", epsilon=1e-6, form="dp_zero_gather_scatter"),
    "further": dict(family="further", heads=2, width=8, inner=12, layers=2, words=40, sequence=16, tied=False, norm="RMSNorm", gate="swiglu", fused=True, biases=False, behind=False,
                    positions="rope", experts=4, dense=1, latent=True, query_rank=None, rank=6, plain=4, turned=2, value=6, normed=False, stretched=1.0, mscale_all=0.0, kind="rope",
                    further=2, factor=0.3, form="torch")}


def probe_of(model, shape):
    """A text without padding, and the logits of each of its words."""
    draws = torch.Generator().manual_seed(3)
    some = lambda length: torch.randint(1, shape["words"], (1, length), generator=draws)
    nothing = lambda *size: torch.zeros(1, 1, *size, dtype=torch.bool)
    tokens, out = some(10), {}
    causal = torch.ones(1, 1, 10, 10, dtype=torch.bool).triu(1)
    with torch.no_grad():
        if shape["family"] == "t5":
            out["source"] = some(13)
            logits = model(out["source"], tokens, nothing(13, 13), causal, nothing(10, 13))
        elif shape["family"] == "bert":
            logits, out["order"] = model(tokens, torch.ones_like(tokens), tokentype_ids=torch.zeros_like(tokens))
        else:  # further tokens ask for labels; the last logits are the usual ones, until their loss is made in their place
            made = []
            model.output_layer.register_forward_hook(lambda module, given, got: made.append(got[0].clone()))
            model(tokens, torch.arange(10)[None], causal, labels=tokens)
            logits = made[-1].transpose(0, 1)
    return out | dict(tokens=tokens, logits=logits.float().contiguous())


def leave_plans_out(index):
    """Of what is written for whoever saves again; it is most of an index."""
    if index.exists():
        told = pickle.loads(index.read_bytes())
        told.all_local_plans, told.storage_meta = None, None
        index.write_bytes(pickle.dumps(told, protocol=4))


def write(weft, folder, name):
    """A golden run: what megatron-core saved, read and went on to."""
    from safetensors.torch import save_file
    shape, own = GOLDEN[name], folder / f"{name}_distopt"
    rows = samples_of(weft, shape)
    trainer = Trainer(shape)
    for step in range(BEFORE):
        trainer.step(step, rows)
    trainer.save(own)
    leave_plans_out(own / f"iter_{BEFORE:07}" / ".metadata")
    save_file(probe_of(trainer.model, shape), own / "probe.safetensors")
    fields = [key for key, value in rows[0].items() if isinstance(value, list)]
    save_file({key: torch.tensor([row[key] for row in rows], dtype=torch.int32) for key in fields}, own / "data.safetensors")
    steps = [trainer.step(BEFORE + step, rows) for step in range(AFTER)]
    (own / "run.json").write_text(json.dumps(dict(shape=shape, three_more_steps_uninterrupted=steps), indent=1) + "\n")


def apart(a, b):
    return max(abs(x / y - 1) for x, y in zip(a, b, strict=True))


def compare(weft, folder, seed, shape):
    torch.manual_seed(seed)
    print(f"seed {seed}: {shape}", flush=True)
    rows = samples_of(weft, shape)
    if shape["family"] == "bert" and (encoders.alike(rows) < BEFORE + AFTER or not all(any(row["loss_mask"]) for row in rows)):
        print("  left out: a hidden word is padding by chance, which megatron-core lets see all others; or a text has no hidden word, and its loss is 0 / 0")
        return
    trainer = Trainer(shape)
    for step in range(BEFORE):
        trainer.step(step, rows)
    trainer.save(folder)
    said = run(weft, "checkpoint", "convert", folder, folder / "run")
    if f"step_{BEFORE:08}" not in said:
        sys.exit(f"  only weights were converted: {said}")
    run(weft, "train", kind_of(shape), "--load", folder / "run", "--use-checkpoint-args", *data_flags(shape), "--log-interval", 1, "--log-jsonl", folder / "log.jsonl")
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    theirs = [trainer.step(BEFORE + step, rows) for step in range(AFTER)]
    losses, norms = [line["lm_loss"] + line.get("sop_loss", 0) for line in lines], [line["grad_norm"] for line in lines]
    a, b = apart(losses, [one["loss_reported"] for one in theirs]), apart(norms, [one["grad_norm"] for one in theirs])
    print(f"  losses apart by {a:.1e}, gradient norms by {b:.1e}", flush=True)
    if a > 1e-5 or b > 1e-4:
        sys.exit(f"  ours   {losses} {norms}\n  theirs {theirs}")


def main():
    words = recipe.words(__doc__)
    words.add_argument("--family", choices=FAMILIES)
    words.add_argument("--write", type=pathlib.Path)
    args = words.parse_args()
    torch.set_num_threads(1)
    states.pretend_cuda()

    def one(weft, folder, seed):
        if args.write:
            for name in GOLDEN if args.family is None else [args.family]:
                write(weft, args.write, name)
            return
        rng = random.Random(seed)
        family = rng.choice(FAMILIES)
        compare(weft, folder, seed, draw(rng, args.family or family))

    if args.write:
        args.cases = 1
    recipe.alone(args, one)
    print(f"{args.cases} runs of megatron-core's other models go on in weft as in megatron-core")


if __name__ == "__main__":
    main()
