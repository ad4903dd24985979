"""Ranks as processes: the words and a training over MPI give the bits that thread ranks give.

mpi_test.py MPIRUN WORDS [WEFT]: the programs are tests/comm/mpi_words.cpp and weft."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

MPIRUN, WORDS, WEFT = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl="self,vader,tcp",
                   OMPI_MCA_hwloc_base_binding_policy="none", OMP_NUM_THREADS="1")
TINY = ("train gpt --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --micro-batch-size 2 "
        "--global-batch-size 8 --lr 1e-2 --train-iters 6 --mock-data --vocab-size 250 --log-interval 1 "
        "--eval-iters 1").split()


def run(*words):
    return subprocess.run([str(w) for w in words], env=ENVIRONMENT, capture_output=True, text=True, timeout=120)


def mpi(ranks, *words):
    return run(MPIRUN, "-n", ranks, *words)


def lines_of(program, path):
    """Loss and norm of every step, as they are written."""
    done = run(*program, "--log-jsonl", path)
    assert done.returncode == 0, done.stderr
    steps = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    return [(s["iteration"], s["lm_loss"], s["grad_norm"]) for s in steps if "grad_norm" in s]


class Words(unittest.TestCase):
    def test_give_the_bits_of_threads(self):
        for ranks in (1, 2, 3, 4, 8):
            done = mpi(ranks, WORDS)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"{ranks} ranks: ", done.stdout)

    def test_a_failing_rank_ends_the_others_who_say_nothing(self):
        done = mpi(4, WORDS, "fail")
        self.assertEqual(done.returncode, 7)
        self.assertEqual(done.stderr.count("sample 17 is torn"), 1)
        self.assertNotIn("rank 0 ", done.stderr)

    def test_of_different_lengths_are_refused(self):
        done = mpi(2, WORDS, "differ")
        self.assertEqual(done.returncode, 7)
        self.assertIn("broadcast: 24 bytes are expected from rank 0, which sends 16", done.stderr)


@unittest.skipUnless(WEFT, "weft itself is not built")
class Training(unittest.TestCase):
    def same(self, ranks, *flags):
        with tempfile.TemporaryDirectory() as folder:
            train = [WEFT, *TINY, *flags, "--threads", "1"]
            threads = lines_of([*train, "--ranks", ranks], f"{folder}/threads.jsonl")
            mpi_ranks = lines_of([MPIRUN, "-n", ranks, *train], f"{folder}/mpi.jsonl")
        self.assertEqual(len(threads), 6)
        self.assertEqual(threads, mpi_ranks)

    def test_with_two_data_parallel_ranks_gives_the_bits_of_threads(self):
        self.same("2", "--use-distributed-optimizer", "--overlap-grad-reduce", "--ddp-bucket-size", "20000")

    def test_with_two_tensor_parallel_ranks_gives_the_bits_of_threads(self):
        self.same("2", "--tensor-model-parallel-size", "2", "--sequence-parallel")

    def test_with_four_ranks_gives_the_bits_of_threads(self):
        self.same("4", "--tensor-model-parallel-size", "2", "--bf16", "--use-distributed-optimizer")

    def test_says_once_what_is_wrong(self):
        done = mpi(2, WEFT, *TINY, "--tensor-model-parallel-size", "4")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("2 ranks cannot be shared out: tensor 4"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
