"""Checkpoints that DeepSpeed itself writes of small models of transformers, of shapes that no golden file has: what weft makes of
them is what DeepSpeed's own zero_to_fp32 and ds_to_universal make of them, bit for bit.
  build/oracle/bin/python tests/oracle/deepspeed_checkpoints.py --weft build/release/weft
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# name, stage, ranks, model, what else its config says
CASES = [
    ("odd_sizes_zero1", 1, 3, "gpt2", {}),
    ("odd_sizes_zero2", 2, 3, "llama_tied", {}),
    ("odd_sizes_zero3", 3, 3, "llama_tied", {"sub_group_size": 1500}),
    ("fused_zero3", 3, 2, "phi3", {"stage3_param_persistence_threshold": 100}),
    ("many_ranks_zero1", 1, 5, "gpt2", {}),
    ("one_group_zero3", 3, 4, "gpt2", {"groups": 1}),
    ("f32_sums", 1, 2, "llama_tied", {"grad_accum_dtype": "fp32"}),
    ("alone", 2, 1, "gpt2", {}),
    ("f32", 2, 2, "gpt2", {"bf16": False}),
]


def model_of(kind):
    import transformers
    common = dict(vocab_size=35, bos_token_id=1, eos_token_id=2)
    llama = dict(hidden_size=12, num_attention_heads=2, num_key_value_heads=1, num_hidden_layers=2,
                 max_position_embeddings=16, head_dim=6, pad_token_id=None, **common)
    if kind == "gpt2":
        config = transformers.GPT2Config(n_positions=16, n_embd=14, n_layer=2, n_head=2, resid_pdrop=0, embd_pdrop=0,
                                         attn_pdrop=0, **common)
    elif kind == "llama_tied":
        config = transformers.LlamaConfig(intermediate_size=19, tie_word_embeddings=True, **llama)
    else:
        config = transformers.Phi3Config(intermediate_size=19, **llama)
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")


def rank_main(out, stage, kind, more):
    """One rank: three steps on random words, and a checkpoint."""
    import deepspeed
    import torch
    deepspeed.init_distributed("gloo")
    world = int(os.environ["WORLD_SIZE"])
    torch.manual_seed(5)
    model = model_of(kind)
    named = list(model.named_parameters())
    groups = [{"params": [p for _, p in named if p.dim() > 1], "weight_decay": 0.1},
              {"params": [p for _, p in named if p.dim() <= 1], "weight_decay": 0.0}]
    if more.pop("groups", 2) == 1:
        groups = [{"params": [p for _, p in named], "weight_decay": 0.1}]
    bf16 = more.pop("bf16", True)
    config = {"train_micro_batch_size_per_gpu": 2, "train_batch_size": 2 * world, "gradient_clipping": 1.0,
              "zero_allow_untested_optimizer": True, "steps_per_print": 10**9,
              "bf16": {"enabled": bf16}}
    sums = more.pop("grad_accum_dtype", None)
    if sums:
        config["data_types"] = {"grad_accum_dtype": sums}
    config["zero_optimization"] = {"stage": stage, **more}
    optimizer = torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.95))
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    words = torch.Generator().manual_seed(int(os.environ["RANK"]))
    for _ in range(3):
        tokens = torch.randint(0, 35, (2, 16), generator=words)
        engine.backward(engine(input_ids=tokens, labels=tokens).loss)
        engine.step()
    engine.save_checkpoint(out)
    if os.environ["RANK"] == "0":
        model.config.save_pretrained(out)


def made(folder, case):
    name, stage, ranks, kind, more = case
    out = folder / name
    port = 29500 + abs(hash(name)) % 2000
    workers = []
    for rank in range(ranks):
        env = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks),
               "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"}
        workers.append(subprocess.Popen([sys.executable, __file__, "--rank", str(out), str(stage), kind,
                                         json.dumps(more)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    said = [worker.communicate()[0].decode() for worker in workers]
    if any(worker.returncode for worker in workers):
        sys.exit(f"{name}: DeepSpeed failed:\n{said[0][-3000:]}")
    return out


def theirs(out):
    """What DeepSpeed makes of it: whole masters, and whole averages where ds_to_universal can. Its own zero_to_fp32 does not know the
    files of its optimizer with sums in f32: of those, the weights that were multiplied."""
    import torch
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint
    tag = (out / "latest").read_text()
    try:
        weights = {n: t.contiguous().float() for n, t in get_fp32_state_dict_from_zero_checkpoint(str(out)).items()}
    except ValueError as error:
        print(f"{out.name}: zero_to_fp32: {error}")
        weights = torch.load(out / tag / "mp_rank_00_model_states.pt", weights_only=False)["module"]
    run = subprocess.run([sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal", "--input_folder",
                          str(out / tag), "--output_folder", str(out / "universal"), "--inject_missing_state",
                          "--num_extract_workers", "1", "--num_merge_workers", "1"],
                         capture_output=True, text=True)
    averages = {"exp_avg": {}, "exp_avg_sq": {}}
    if run.returncode:
        print(f"{out.name}: ds_to_universal: {run.stderr.strip().splitlines()[-1]}")
        return weights, None
    for kind, all_of_it in averages.items():
        for file in (out / "universal/zero").glob(f"*/{kind}.pt"):
            value = torch.load(file, weights_only=False)
            value = value["param"] if isinstance(value, dict) else value
            all_of_it[file.parent.name] = value.reshape(weights[file.parent.name].shape)
    return weights, averages


def convert(weft, *words):
    run = subprocess.run([weft, "checkpoint", "convert", *map(str, words)], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{words}: {run.stderr}")


def read_step(weft, source, target):
    from safetensors.torch import load_file
    convert(weft, source, target)
    out = {}
    for file in sorted(next(target.glob("step_*")).glob("*.safetensors")):
        out.update(load_file(file))
    return out


def check(weft, folder, case):
    import torch
    from safetensors.torch import save_file
    out = made(folder, case)
    weights, averages = theirs(out)
    # Everything lies as weights do, so a directory whose weights they are says where each belongs.
    ours = read_step(weft, out, folder / f"{case[0]}_weft")
    compared = 0
    for kind, ending, whole in (("fp32", "", weights), ("exp_avg", ".m", averages and averages["exp_avg"]),
                                ("exp_avg_sq", ".v", averages and averages["exp_avg_sq"])):
        if whole is None:
            continue
        place = folder / f"{case[0]}_{kind}"
        place.mkdir()
        shutil.copy(out / "config.json", place)
        save_file({n: t.contiguous().clone() for n, t in whole.items()}, place / "model.safetensors")
        for name, tensor in read_step(weft, place, folder / f"{case[0]}_{kind}_weft").items():
            assert torch.equal(ours[name + ending].to(tensor.dtype), tensor), f"{case[0]}: {name}{ending} differs"
            compared += 1
    universal = None
    if averages is not None:
        universal = read_step(weft, out / "universal", folder / f"{case[0]}_universal_weft")
        assert universal.keys() == ours.keys(), f"{case[0]}: of a universal checkpoint"
        for name, tensor in ours.items():
            assert torch.equal(universal[name], tensor), f"{case[0]}: {name} of a universal checkpoint differs"
    print(f"{case[0]}: {compared} tensors{', the same of a universal checkpoint' if universal else ''}: equal")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", default="build/release/weft")
    parser.add_argument("--only")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if args.only in (None, case[0]):
                check(os.path.abspath(args.weft), pathlib.Path(folder), case)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        rank_main(sys.argv[2], int(sys.argv[3]), sys.argv[4], json.loads(sys.argv[5]))
    else:
        main()
