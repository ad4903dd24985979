#!/usr/bin/env python3
"""Writes English-like text and program source of a given size from what a Debian machine holds, the same bytes every
time on the same machine: corpus.py KIND SIZE_IN_MB OUT, with KIND english, source or mixed."""
import gzip, os, sys

ENGLISH = [("/usr/share/doc", ("copyright", ".txt", ".md", ".rst", "README", ".gz")), ("/usr/share/perl", (".pod",)),
           ("/usr/share/man/man1", (".gz",)), ("/usr/share/man/man3", (".gz",)), ("/usr/share/man/man8", (".gz",))]
SOURCE = [("/usr/lib/python3", (".py",)), ("/usr/include", (".h", ".hpp")), ("/usr/share/perl", (".pm", ".pl")),
          ("/usr/lib/gcc", (".h",))]
KINDS = {"english": ENGLISH, "source": SOURCE, "mixed": ENGLISH + SOURCE}


def files(places):
    for root, ends in places:
        for folder, below, names in os.walk(root):
            below.sort()
            for name in sorted(names):
                if name.endswith(ends) and not os.path.islink(os.path.join(folder, name)):
                    yield os.path.join(folder, name)


def texts(places):
    seen = set()
    for path in files(places):
        try:
            raw = gzip.open(path).read() if path.endswith(".gz") else open(path, "rb").read()
            text = raw.decode("utf-8")
        except (OSError, UnicodeDecodeError, EOFError):
            continue
        if "\0" in text or hash(raw) in seen or len(raw) > 1 << 20:
            continue
        seen.add(hash(raw))
        yield raw


def main():
    kind, size, out = sys.argv[1], int(float(sys.argv[2]) * 1e6), sys.argv[3]
    written, rounds = 0, 0
    with open(out, "wb") as to:
        while written < size:
            before = written
            for raw in texts(KINDS[kind]):
                raw = raw[: size - written].decode("utf-8", "ignore").encode()
                written += to.write(raw)
                if written >= size - 4:
                    break
            rounds += 1
            if written == before or written >= size - 4:
                break
    print(f"{out}: {written} bytes of {kind} text, the machine's files {rounds} times")


if __name__ == "__main__":
    main()
