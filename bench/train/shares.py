#!/usr/bin/env python3
"""shares.py zero WEFT [ROUNDS [bf16]] | shares.py fsdp WEFT PYTHON [ROUNDS [bf16]] | shares.py worker [bf16]: GPT-2 124M in f32 or bf16 on two ranks of one thread.

zero: ZeRO's stages 1, 2 and 3 one after the other in each round; a share is taken within a round, so that what slows the machine for a while
slows all. fsdp: stage 3 in turn with PyTorch's fully_shard (FSDP2) over gloo, run by PYTHON, which has torch; the model is bench/step/peers.py's.
Medians over rounds are told, and what each run took. `worker` is one of the two processes of PyTorch's."""
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

SEQUENCE, STEPS = 256, 3
MODEL = f"""--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length {SEQUENCE} --max-position-embeddings {SEQUENCE} --vocab-size 50304
  --attention-dropout 0 --hidden-dropout 0 --lr 1e-4 --mock-data --data-order keyed --eval-iters 0 --log-interval 1 --ranks 2 --threads 1
  --micro-batch-size 2 --global-batch-size 4""".split()


def weft_seconds(weft, zero, *more):
    """A step, the first left out."""
    with tempfile.TemporaryDirectory(prefix="weft-shares-") as name:
        log = pathlib.Path(name) / "log.jsonl"
        run = subprocess.run([weft, "train", "gpt", *MODEL, "--train-iters", str(STEPS), "--zero-stage", str(zero), "--log-jsonl", str(log), *more],
                             capture_output=True, text=True)
        if run.returncode:
            sys.exit(run.stderr)
        return statistics.median(json.loads(line)["milliseconds"] / 1000 for line in log.read_text().splitlines()[1:])


def torch_seconds(python, *dtype):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    both = [subprocess.Popen([python, __file__, "worker", *dtype], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": str(rank), "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"})
            for rank in range(2)]
    said = [process.communicate() for process in both]
    if any(process.returncode for process in both):
        sys.exit(said[0][1] + said[1][1])
    return float(said[0][0])


def worker(*dtype):
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "step"))
    import torch
    import torch.distributed as dist
    from peers import Gpt2, VOCABULARY
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.distributed.device_mesh import init_device_mesh
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2,))
    torch.manual_seed(1)
    model = Gpt2(SEQUENCE)
    how = {"mesh": mesh}
    if dtype:
        how["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, **how)
    fully_shard(model, **how)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    took = []
    for _ in range(STEPS):
        tokens = torch.randint(0, VOCABULARY, (2, SEQUENCE + 1))
        dist.barrier()
        start = time.perf_counter()
        model(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()
        took.append(time.perf_counter() - start)
    if dist.get_rank() == 0:
        print(statistics.median(took[1:]))
    dist.destroy_process_group()


def table(names, rounds, seconds, beside):
    """Tells what each run took as it comes, so that who is stopped keeps what there was."""
    took = []
    for number in range(rounds):
        took.append({})
        for name in names:
            took[-1][name] = seconds(name)
            print(f"round {number + 1}: {name} {took[-1][name]:.2f} s a step", flush=True)
    print(f"| | tokens/s | of {beside}, median of {rounds} rounds (least to most) |\n|---|---|---|")
    for name in names:
        shares = sorted(t[beside] / t[name] for t in took)
        print(f"| {name} | {4 * SEQUENCE / statistics.median(t[name] for t in took):.0f} | {statistics.median(shares):.1%} ({shares[0]:.1%} to {shares[-1]:.1%}) |")


def main():
    what, *rest = sys.argv[1:]
    if what == "worker":
        return worker(*rest)
    if what == "zero":
        weft, rounds, dtype = rest[0], int((rest[1:] or ["5"])[0]), rest[2:3]
        flags = [f"--{name}" for name in dtype]
        return table(["ZeRO-1", "ZeRO-2", "ZeRO-3"], rounds, lambda name: weft_seconds(weft, name[-1], *flags), "ZeRO-1")
    weft, python, rounds = rest[0], rest[1], int((rest[2:] or ["5"])[0])
    dtype = rest[3:4]
    flags = [f"--{name}" for name in dtype]
    table(["ZeRO-3", "FSDP2"], rounds, lambda name: torch_seconds(python, *dtype) if name == "FSDP2" else weft_seconds(weft, 3, *flags), "FSDP2")


if __name__ == "__main__":
    main()
