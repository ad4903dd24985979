#!/usr/bin/env python3
"""f8_blocks.py: codes and scales of blocks as torch's 8-bit floats and Transformer Engine's formulas have them, for the numbers of
tests/ops/scaled_blocks_test.cpp. Fails where that test holds other sums of them."""
import pathlib
import re
import sys

import torch

TEST = pathlib.Path(__file__).resolve().parent.parent / "ops/scaled_blocks_test.cpp"

ROWS, COLUMNS = 160, 288


def numbers():
    i = torch.arange(ROWS * COLUMNS, dtype=torch.int64)
    return ((i * 7919 % 2003 - 1001).float() * torch.exp2((i * 31 % 29 - 20).float())).view(ROWS, COLUMNS)


def of_blocks(x, high, wide):
    """The greatest of each block, for each of its elements; sizes are whole blocks of zeros where x ends."""
    padded = torch.zeros(-(-x.shape[0] // high) * high, -(-x.shape[1] // wide) * wide)
    padded[: x.shape[0], : x.shape[1]] = x.abs()
    blocks = padded.view(padded.shape[0] // high, high, padded.shape[1] // wide, wide).amax((1, 3))
    return blocks, blocks.repeat_interleave(high, 0).repeat_interleave(wide, 1)[: x.shape[0], : x.shape[1]]


def power_below(greatest, largest):
    """Float8BlockScaling: the quotient without its mantissa."""
    quotient = torch.where(greatest > 0, largest / greatest, torch.ones_like(greatest))
    return (quotient.view(torch.int32) & torch.tensor(-0x800000, dtype=torch.int32)).view(torch.float32)


def exponent_above(greatest, largest):
    """MXFP8BlockScaling: of amax / largest, the exponent, one more where anything is behind it."""
    bits = (greatest * (1 / torch.tensor(largest))).view(torch.int32)
    return (bits >> 23) + ((bits & 0x7FFFFF) != 0)


def weighed(values):
    flat = values.reshape(-1).to(torch.int64)
    return int((flat * (torch.arange(flat.numel()) % 97 + 1)).sum())


def sums(dtype, high, wide, x):
    largest = torch.finfo(dtype).max
    blocks, around = of_blocks(x, high, wide)
    if wide == 32:
        kept, scale = exponent_above(blocks, largest), torch.exp2(127 - exponent_above(around, largest).float())
    else:
        kept, scale = 127 - torch.log2(power_below(blocks, largest)), power_below(around, largest)  # the exponent of one over it
    return weighed((x * scale).to(dtype).view(torch.uint8)), weighed(kept)


wrong = 0
for word, dtype in (("f8e4m3", torch.float8_e4m3fn), ("f8e5m2", torch.float8_e5m2)):
    for name, high, wide in (("lines_of_128", 1, 128), ("squares_of_128", 128, 128), ("lines_of_32", 1, 32)):
        expected = [n for x in (numbers(), numbers().T.contiguous()) for n in sums(dtype, high, wide, x)]
        line = re.search(rf"Line\{{Dtype::{word},\s+{name},\s+\{{(\d+),\s+(\d+)\}},\s+\{{(\d+),\s+(\d+)\}}\}}", TEST.read_text())
        held = [int(n) for n in line.groups()] if line else None
        print(f"f8_blocks: {word} {name}: {expected}" + ("" if held == expected else f", but the test holds {held}"))
        wrong += held != expected
sys.exit(wrong > 0)
