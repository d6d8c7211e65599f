"""Writes the text, table and noise that zstd packs: python3 corpus.py FILE. The same bytes each time."""

import random
import sys

WORDS = 4000
TEXT_WORDS = 150_000
ROWS = 20_000
NOISE_BYTES = 200_000


def main(path):
    source = random.Random(2024)
    words = ["".join(source.choices("etaoinshrdlu", k=source.randint(2, 10))) for _ in range(WORDS)]
    with open(path, "wb") as corpus:
        text = source.choices(words, weights=[1 / (rank + 1) for rank in range(WORDS)], k=TEXT_WORDS)
        corpus.write(" ".join(text).encode())
        for row in range(ROWS):
            corpus.write(b"%08d,%05d,%s\n" % (row, source.randint(0, 99999), words[row % 17].encode()))
        corpus.write(source.randbytes(NOISE_BYTES))


if __name__ == "__main__":
    main(sys.argv[1])
