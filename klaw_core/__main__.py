"""``python -m klaw_core`` is ``klaw``."""

from klaw_core.cli.startup import run

if __name__ == "__main__":
    run()
