"""What the oracles of training share: Megatron's recipe by torch, a program's run, and how cases are drawn and compared on a rank that is alone."""
import argparse, pathlib, random, subprocess, sys, tempfile

import torch

STEPS, WARM, DECAY, GLOBAL, MICRO = 20, 5, 0.1, 4, 2


def steps(model, loss_of, samples, rate, after=lambda: None):
    """Losses and gradient norms with torch's AdamW: the mean over microbatches, clipping to 1, no decay of biases and gains.
    loss_of takes a microbatch: a tensor for each list of a sample. after() follows every update."""
    # transformers' gpt-oss has biases of all experts in one tensor, and Command-R+ gains of all heads
    matrix = lambda name, p: p.dim() > 1 and not name.endswith(("bias", "_norm.weight"))
    wide, thin = ([p for name, p in model.named_parameters() if matrix(name, p) == decayed] for decayed in (True, False))
    adam = torch.optim.AdamW([{"params": wide, "weight_decay": DECAY}, {"params": thin, "weight_decay": 0.0}], betas=(0.9, 0.999), eps=1e-8)
    losses, norms = [], []
    for step in range(STEPS):
        for group in adam.param_groups:
            group["lr"] = rate * min(1.0, step / WARM)
        rows = samples[step * GLOBAL:(step + 1) * GLOBAL]
        told = 0
        for at in range(0, GLOBAL, MICRO):
            part = loss_of({key: torch.tensor([r[key] for r in rows[at:at + MICRO]]) for key in rows[0] if isinstance(rows[0][key], list)})
            (part * MICRO / GLOBAL).backward()
            told += part.item() * MICRO / GLOBAL
        losses.append(told)
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        adam.step()
        after()
        adam.zero_grad()
    return losses, norms


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return done.stdout


def words(description, cases=6):
    """Of an oracle's command line; a seed that is not said is drawn."""
    out = argparse.ArgumentParser(description=description)
    out.add_argument("weft")
    out.add_argument("--cases", type=int, default=cases)
    out.add_argument("--seed", type=int, default=random.randrange(2**31))
    return out


def one_rank(folder):
    """Torch and megatron-core know of no other."""
    from megatron.core import parallel_state, tensor_parallel
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    tensor_parallel.model_parallel_cuda_manual_seed(1)


def alone(args, compare):
    """compare(WEFT, folder, seed) of every case on one rank, each with a folder and a seed of its own."""
    with tempfile.TemporaryDirectory() as folder:
        one_rank(folder)
        out = []
        for case in range(args.cases):
            own = pathlib.Path(folder) / str(case)
            own.mkdir()
            out.append(compare(args.weft, own, args.seed + case))
    return out
