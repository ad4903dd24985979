#!/usr/bin/env python3
"""torch_step.py LAYERS HIDDEN HEADS BATCH [STEPS]: the step of bench/gpu/run's models by PyTorch on a GPU, in bf16 with masters in f32.

The model is bench/step/peers.py's, compiled, with fused AdamW and clipping to 1, sequence 1024. Prints one JSON object: seconds of each counted step.
"""
import json
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "step"))
import peers

SEQUENCE = 1024


def main():
    peers.LAYERS, peers.HIDDEN, peers.HEADS, batch = map(int, sys.argv[1:5])
    steps = int(sys.argv[5]) if len(sys.argv) > 5 else 10
    model = peers.Gpt2(SEQUENCE).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    run = torch.compile(model)
    words = torch.randint(0, peers.VOCABULARY, (batch, SEQUENCE + 1), device="cuda")
    took = []
    for _ in range(steps + 3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = run(words[:, :-1], words[:, 1:].contiguous())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        took.append(time.perf_counter() - start)
    print(json.dumps({"step_seconds": took[3:], "torch": torch.__version__}))


if __name__ == "__main__":
    main()
