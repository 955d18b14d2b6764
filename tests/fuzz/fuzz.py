"""Fuzz one target, guided by coverage: ``python tests/fuzz/fuzz.py TARGET [SECONDS]``; without arguments, list them.

A finding ends the run with its traceback, and its bytes are kept beside the corpus in ``.fuzz/TARGET``. The native
code of tokenizers and onnxruntime is not instrumented: their targets are as blind as random bytes.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(
    include=["klaw_core", "klaw_embed_onnx", "klaw_fts5", "klaw_models", "klaw_store_sqlitevec", "klaw_words"]
):
    from targets import TARGETS


def main() -> None:
    """Fuzz until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="?", choices=sorted(TARGETS))
    parser.add_argument("seconds", nargs="?", type=int, default=60)
    arguments = parser.parse_args()
    if arguments.target is None:
        sys.stdout.write("\n".join([*TARGETS, ""]))
        return
    kept = Path(".fuzz") / arguments.target
    corpus = kept / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="klaw-fuzz-") as directory:
        target = TARGETS[arguments.target](Path(directory).resolve() / "home")
        for number, seed in enumerate(target.seeds):
            (corpus / f"seed-{number}").write_bytes(seed)
        limits = [f"-max_total_time={arguments.seconds}", "-max_len=4096", "-timeout=60", "-rss_limit_mb=4096"]
        atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={kept}/", str(corpus)], target.run)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
