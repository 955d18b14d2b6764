"""A plugin names the generation of hooks that it was written for, not whatever the core speaks."""

import subprocess
import sys

import pytest

_LATER_CORE = """
from klaw_core import hookspecs
hookspecs.API += 1
from klaw_core.plugins.discover import discover
for plugin in discover().plugins:
    if plugin.components and plugin.distribution != "klaw":
        print(plugin.distribution, "fits" if not plugin.problem else plugin.problem)
"""


@pytest.mark.cold_start
def test_a_later_core_reports_each_plugin_of_this_version_as_outdated():
    run = subprocess.run([sys.executable, "-c", _LATER_CORE], check=True, capture_output=True, text=True)
    lines = run.stdout.splitlines()
    assert lines
    assert [
        line for line in lines if "was written for plugin API 2; klaw provides 3: update the plugin" not in line
    ] == []
