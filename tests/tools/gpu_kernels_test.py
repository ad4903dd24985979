#!/usr/bin/env python3
"""gpu_kernels.py reads what the compiler says of kernels, knows how many fit a multiprocessor, and sees every number that got worse."""
import pathlib
import tempfile
import unittest

from planted import tool

kernels = tool("gpu_kernels")

MANGLED = "_ZN4weft12_GLOBAL__N_14moveILi4EEEvNS_4cuda3JobE"
SAID = f"""ptxas info    : Compiling entry function '{MANGLED}' for 'sm_80'
ptxas info    : Function properties for {MANGLED}
    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 16 bytes smem, 512 bytes cmem[0]
"""
PTX = f""".visible .entry {MANGLED}(
.maxntid 256, 1, 1
{{
// begin inline asm
// shared 2048
// end inline asm
"""
CODE = f"""\t.section\t.text.{MANGLED},"ax",@progbits
        /*0000*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0010*/              @!P0 LDG.E R4, desc[UR4][R2.64] ;
        /*0020*/                   HMMA.16816.F32.BF16 R4, R8, R2, R4 ;
        /*0030*/                   STS.128 [R9], R4 ;
        /*0050*/                   HGMMA.64x64x16.F32.BF16 R24, gdesc[UR12], R24, gsb0 ;
        /*0060*/                   MUFU.EX2 R4, R4 ;
        /*0070*/                   WARPGROUP.DEPBAR.LE gsb0, 0x1 ;
        /*0080*/                   MUFU.EX2 R5, R5 ;
        /*0090*/                   MUFU.EX2 R6, R6 ;
        /*00a0*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*00b0*/                   MUFU.EX2 R7, R7 ;
        /*0040*/                   LDC R1, c[0x0][0x37c] ;
"""
NUMBERS = {"threads": 256, "registers": 40, "spilled": 0, "local": 8, "shared": 2064, "occupancy": 75, "tensor": 2, "meanwhile": 2, "wide": 2, "narrow": 1}
KEY = ("sm_80", "move.cu", "move<4>")


class GpuKernels(unittest.TestCase):
    def test_reads_what_the_compiler_says(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = pathlib.Path(folder)
            for name, text in (("said.txt", SAID), ("code.ptx", PTX), ("listing", CODE)):
                (kept / name).write_text(text)
            disassembler = kept / "nvdisasm"
            disassembler.write_text(f"#!/bin/sh\ncat {kept}/listing\n")
            disassembler.chmod(0o755)
            read = kernels.told(kept, "sm_80", disassembler)
            self.assertEqual(read, {MANGLED: NUMBERS | {"spilled": 28}})
            of_both = SAID + SAID.replace("sm_80", "sm_90a").replace(", 16 bytes smem", "").replace("40 registers", "41 registers")
            (kept / "said.txt").write_text(of_both)
            self.assertEqual(kernels.told(kept, "sm_80", disassembler), read)
            self.assertEqual((kernels.told(kept, "sm_90a", disassembler)[MANGLED]["registers"], kernels.told(kept, "sm_90a", disassembler)[MANGLED]["shared"]), (41, 2048))
            self.assertEqual(list(kernels.plain(read)), ["move<4>"])

    def test_makes_code_of_one_ptx_for_kinds_that_have_it_in_common(self):
        with tempfile.TemporaryDirectory() as folder:
            all_kinds = list(kernels.SHARED)

            def asked(text, archs=all_kinds):
                source = pathlib.Path(folder, "move.cu")
                source.write_text(text)
                return [(ptx, kinds) for _, ptx, kinds in kernels.compilations([source], archs)]
            self.assertEqual(asked("// Moves.\n"), [("compute_80", ["sm_80", "sm_90a"]), ("compute_100a", ["sm_100a"])])
            self.assertEqual(asked("// Moves.\n", ["sm_90a"]), [("compute_80", ["sm_90a"])])
            self.assertEqual(asked("// Moves.\n// only: sm_90a\n"), [("compute_90a", ["sm_90a"])])
            self.assertEqual(asked("// apart: sm_90a\n"), [("compute_80", ["sm_80"]), ("compute_90a", ["sm_90a"]), ("compute_100a", ["sm_100a"])])
            self.assertEqual(kernels.options_of(pathlib.Path(folder, "move.cu")), kernels.OPTIONS)
            asked("// Moves.\n// nvcc: -fmad=false -lineinfo\n")
            self.assertEqual(kernels.options_of(pathlib.Path(folder, "move.cu")), [*kernels.OPTIONS, "-fmad=false", "-lineinfo"])
            with self.assertRaises(SystemExit) as refused:
                asked("// Moves, exactly. only: sm_90a\n")
            self.assertEqual(str(refused.exception), "gpu_kernels: move.cu: 'only:' must begin a line of its own, or nobody reads it")

    def test_reads_what_the_sources_say(self):
        for source in kernels.CUDA.glob("*.cu"):
            for word in ("nvcc", "only", "apart"):
                kernels.line_of(source, word)

    def test_refuses_products_that_wait_for_each_other(self):
        said = ("ptxas info    : (C7520) Potential Performance Loss: wgmma.mma_async instructions are serialized due to program dependence on "
                "compiler-inserted WG.AR in divergent path in the function 'move'\n")
        kernels.must_overlap(SAID, pathlib.Path("move.cu"), ["sm_90a"])
        with self.assertRaises(SystemExit) as refused:
            kernels.must_overlap(SAID + 2 * said, pathlib.Path("x/move.cu"), ["sm_90a"])
        self.assertEqual(str(refused.exception), "gpu_kernels: move.cu for sm_90a: products of warpgroups wait for each other, by program dependence on "
                                                 "compiler-inserted WG.AR in divergent path")

    def test_knows_how_many_warps_fit(self):
        self.assertEqual(kernels.occupancy("sm_80", 256, 32, 0), 100)
        self.assertEqual(kernels.occupancy("sm_80", 256, 33, 0), 75)  # 1280 registers a warp: 12 to a scheduler
        self.assertEqual(kernels.occupancy("sm_80", 128, 168, 80 << 10), 12)  # two blocks by their memory
        self.assertEqual(kernels.occupancy("sm_90a", 128, 168, 80 << 10), 12)  # and by 233472 bytes
        self.assertEqual(kernels.occupancy("sm_90a", 32, 16, 0), 50)  # 32 blocks of a warp

    def test_takes_a_table_as_it_was_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "table.md")
            path.write_text(kernels.rows({KEY: NUMBERS}))
            self.assertEqual(kernels.table(path), {KEY: NUMBERS})

    def said(self, now, before):
        return list(kernels.complaints(now, before, "T.md"))

    def test_finds_what_got_worse(self):
        self.assertEqual(self.said({KEY: NUMBERS}, {KEY: NUMBERS}), [])
        better = {"registers": 39, "local": 0, "shared": 0, "occupancy": 76, "tensor": 3, "meanwhile": 3, "wide": 3, "narrow": 0}
        worse = {"registers": 41, "local": 9, "shared": 2065, "occupancy": 74, "tensor": 1, "meanwhile": 1, "wide": 1, "narrow": 2}
        for column, value in better.items():
            self.assertEqual(self.said({KEY: NUMBERS | {column: value}}, {KEY: NUMBERS}), [])
        for column, value in worse.items():
            self.assertEqual(self.said({KEY: NUMBERS | {column: value}}, {KEY: NUMBERS}),
                             [f"sm_80 move.cu move<4>: {column} is {value}, and T.md has {NUMBERS[column]}"])

    def test_finds_what_spills_whatever_the_table_has(self):
        spills = {KEY: NUMBERS | {"spilled": 4}}
        self.assertEqual(self.said(spills, spills), ["sm_80 move.cu move<4>: 4 bytes of registers are spilled, and none may be"])

    def test_finds_kernels_without_numbers_and_numbers_without_kernels(self):
        self.assertEqual(self.said({KEY: NUMBERS}, {}), ["sm_80 move.cu move<4> is not in T.md: tools/gpu_kernels.py --write"])
        self.assertEqual(self.said({}, {KEY: NUMBERS}), ["sm_80 move.cu move<4> is in T.md alone: tools/gpu_kernels.py --write"])


if __name__ == "__main__":
    unittest.main()
