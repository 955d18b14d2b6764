"""What normalising a text loads."""

from __future__ import annotations

import subprocess
import sys


def test_stemming_is_loaded_with_the_first_cyrillic_word() -> None:
    program = (
        "import sys; from klaw_words.treatment import index_text; index_text('naïve 数据'); "
        "assert 'snowballstemmer' not in sys.modules; print(index_text('памяти'))"
    )
    ran = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", program], capture_output=True, text=True, check=True, encoding="utf8"
    )
    assert ran.stdout.strip() == "памят"
