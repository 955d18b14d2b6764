"""Load a model and embed one word, in a process that may crash: ``python -m klaw_embed_llamacpp.trial``.

The arguments are the file, the context in tokens, the pooling, and the threads. Prints the dimension of the vectors; an
error is printed to stderr.
"""

from __future__ import annotations

import sys
from pathlib import Path

from klaw_core import KlawError
from klaw_embed_llamacpp.runtime import ERRORS, Runtime, Settings


def main(arguments: list[str]) -> int:
    """Try the model; return the exit code."""
    path, context, pooling, threads = arguments
    settings = Settings(int(context), pooling, int(threads))
    try:
        row = Runtime.load(Path(path), settings, verbosity=ERRORS).embed(["one"])
    except KlawError as error:
        print(error.message, file=sys.stderr)  # noqa: T201  # a program's output
        return 1
    print(row.shape[1])  # noqa: T201  # a program's output
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
