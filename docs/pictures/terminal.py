"""Draw the README's picture of a search: real commands over the demo's notes, run in a terminal.

Run it with ``nox -s pictures``. Needs Klaw installed with the extra ``default``, and a system with pseudo-terminals.
"""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from importlib.resources import as_file, files
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 96  # columns
QUESTION = "why did we not want a message broker?"
SEARCHES = (["search", "-n", "2", QUESTION], ["search", "-n", "1", "--explain", "ERR_TLS_42"])
# Rich's own template loads a font from a public server; this one uses the reader's monospace font.
SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: arial; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


def main() -> None:
    """Write the picture to the path given, or next to this program."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("search.svg")
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        with as_file(files("klaw_core.demo") / "notes") as notes:
            shutil.copytree(notes, home / "notes")
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        klaw = [sys.executable, "-m", "klaw_core"]
        for arguments in (["init"], ["index", "notes"]):
            subprocess.run([*klaw, *arguments], cwd=home, env=environment, check=True, capture_output=True)  # noqa: S603 - klaw itself
        console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
        for arguments in SEARCHES:
            shown = " ".join(f'"{word}"' if " " in word else word for word in arguments)
            console.print(Text(f"$ klaw {shown}", style="bold"))
            console.print(Text.from_ansi(run_in_terminal([*klaw, *arguments], home, environment)))
    console.save_svg(str(target), title="klaw", code_format=SVG, unique_id="klaw")


def run_in_terminal(command: list[str], directory: Path, environment: dict[str, str]) -> str:
    """Return what a command writes to a terminal that is ``WIDTH`` columns wide.

    Raises
    ------
    subprocess.CalledProcessError
        The command failed.

    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
    process = subprocess.Popen(command, cwd=directory, env=environment, stdout=slave, stderr=subprocess.DEVNULL)  # noqa: S603 - klaw itself
    os.close(slave)
    pieces = []
    while piece := _read(master):
        pieces.append(piece)
    os.close(master)
    if process.wait():
        raise subprocess.CalledProcessError(process.returncode, command)
    return b"".join(pieces).decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    """Return the next bytes; none at the end, which Linux reports as an I/O error (pty(7))."""
    try:
        return os.read(terminal, 65536)
    except OSError as error:
        if error.errno == errno.EIO:
            return b""
        raise


if __name__ == "__main__":
    main()
