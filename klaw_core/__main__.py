"""``python -m klaw_core`` is ``klaw``."""

from klaw_core.cli import main

if __name__ == "__main__":
    main()
