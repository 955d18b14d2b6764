"""The kit for commands: its names are found where it says, and only when they are used."""

import subprocess
import sys

from klaw_core.cli import kit


def test_every_name_is_in_the_table_of_modules_and_is_found_there():
    assert sorted(kit._MODULE_OF) == sorted(kit.__all__)
    for name in filter(lambda name: not name.isupper(), kit.__all__):
        named_otherwise = {"data", "notices", "pass_settings", "as_of", "since", "until", "when"}
        assert name in named_otherwise or getattr(kit, name).__name__ == name


def test_importing_the_kit_loads_none_of_its_modules():
    program = (
        "import sys, klaw_core.cli.kit as kit; "
        "print([name for name in kit._MODULES if f'klaw_core.cli.{name}' in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
