#!/usr/bin/env python3
"""Says how many parameters transformers makes of each config.json beside this file, which has the shape of a published model, in
the words of its time and without settings of training. Nothing is downloaded, and no weight takes memory. Needs: pip install torch transformers."""
import pathlib
import shutil
import tempfile

import torch
import transformers

for file in sorted(pathlib.Path(__file__).parent.glob("*.json")):
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(file, pathlib.Path(directory) / "config.json")
        config = transformers.AutoConfig.from_pretrained(directory)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    model.tie_weights()
    weights = sum(p.numel() for p in {id(p): p for p in model.parameters()}.values())
    biases = sum(b.numel() for path, b in model.named_buffers() if path.endswith("e_score_correction_bias"))
    print(file.stem, weights + biases)
