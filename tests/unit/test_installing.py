"""Commands to install something work where Klaw runs: for what made the environment, and from where Klaw came."""

import ast
import importlib
import json
import sys
import tomllib
from pathlib import Path

import pytest

from klaw_core.plugins import catalogue, installing

ROOT = Path(__file__).parents[2]
INDEX = None
REPOSITORY = {"url": "https://example.org/klaw.git", "vcs_info": {"vcs": "git", "commit_id": "1"}}


class Environment:
    """An environment on disk, as an installer leaves it, in which Python seems to run."""

    def __init__(self, home, monkeypatch):
        self.prefix = home / "environment"
        self.clone = home / "my clone"
        self._packages = self.prefix / "packages"
        self._packages.mkdir(parents=True)
        self.clone.mkdir()
        (self.clone / "pyproject.toml").touch()
        (self._packages / "pip.py").touch()
        self.programs = {"uv": "/bin/uv"}
        monkeypatch.setattr(installing, "which", self.programs.get)
        monkeypatch.setattr(sys, "path", [str(self._packages)])
        monkeypatch.delitem(sys.modules, "pip", raising=False)
        monkeypatch.setattr(sys, "prefix", str(self.prefix))
        monkeypatch.setattr(sys, "executable", str(self.prefix / "bin" / "python"))
        monkeypatch.setenv("VIRTUAL_ENV", str(self.prefix))
        monkeypatch.delenv("CONDA_PREFIX", raising=False)

    def install(self, name, installer="pip", origin=INDEX, requires=()):
        """Write the metadata of a distribution."""
        info = self._packages / f"{name.replace('-', '_')}-0.1.0.dist-info"
        info.mkdir()
        lines = ["Metadata-Version: 2.4", f"Name: {name}", "Version: 0.1.0"]
        lines += [f"Requires-Dist: {each}" for each in requires]
        (info / "METADATA").write_text("\n".join(lines) + "\n", "utf-8")
        (info / "INSTALLER").write_text(f"{installer}\n", "utf-8")
        if origin is not INDEX:
            (info / "direct_url.json").write_text(json.dumps(origin), "utf-8")

    def from_clone(self, part="", *, editable=False):
        """Return the record of an installation from the clone, as a whole or from a directory in it."""
        return {"url": (self.clone / part).as_uri(), "dir_info": {"editable": True} if editable else {}}

    def install_clone(self, installer="pip", *, editable=False):
        """Install the clone's core and two of its plugins."""
        extras = ["a; extra == 'a'", "b; extra == 'b'", "a; extra == 'default'", "b; extra == 'default'"]
        extras += ["c; extra == 'openai'", "c; extra == 'default-and-more'", "a; extra == 'default-and-more'"]
        self.install("klaw", installer, self.from_clone(editable=editable), ["attrs>=1", *extras])
        for name in ("a", "b"):
            (self.clone / "plugins" / name).mkdir(parents=True)
            (self.clone / "plugins" / name / "pyproject.toml").touch()
            self.install(name, installer, self.from_clone(f"plugins/{name}"), ["klaw"])

    def made_by_uv_tool(self, *requirements):
        """Write what ``uv tool install`` notes down."""
        written = f"[tool]\nrequirements = [{', '.join(requirements)}]\n"
        (self.prefix / "uv-receipt.toml").write_text(written, "utf-8")


@pytest.fixture
def environment(tmp_path, monkeypatch):
    return Environment(tmp_path, monkeypatch)


def made_by(installer, environment):
    """Let the environment be of an installer; return what it writes into INSTALLER."""
    if installer == "uv tool":
        environment.made_by_uv_tool('{ name = "klaw" }', '{ name = "klaw-x", specifier = ">=1" }')
    if installer == "pipx":
        (environment.prefix / "pipx_metadata.json").write_text("{}")
    return {"pipx": "pip", "uv tool": "uv"}.get(installer, installer)


FROM_INDEX = {
    "pip": (
        "pip install 'klaw[openai,mcp]'",
        "pip install --upgrade klaw",
        "pip install --force-reinstall apsw",
        "pip install --force-reinstall --no-deps apsw",
        "pip uninstall klaw-x",
    ),
    "pipx": (
        "pipx runpip environment install 'klaw[openai,mcp]'",
        "pipx runpip environment install --upgrade klaw",
        "pipx runpip environment install --force-reinstall apsw",
        "pipx runpip environment install --force-reinstall --no-deps apsw",
        "pipx runpip environment uninstall klaw-x",
    ),
    "uv": (
        "uv pip install 'klaw[openai,mcp]'",
        "uv pip install --upgrade klaw",
        "uv pip install --reinstall-package apsw apsw",
        "uv pip install --reinstall-package apsw --no-deps apsw",
        "uv pip uninstall klaw-x",
    ),
    "uv tool": (
        "uv tool install --with 'klaw-x>=1' 'klaw[openai,mcp]'",
        "uv tool upgrade environment",
        "uv tool install --reinstall-package apsw --with 'klaw-x>=1' klaw",
        "uv tool install --reinstall-package apsw --with 'klaw-x>=1' klaw",
        "uv tool install klaw",
    ),
}


def commands():
    """Return every command: extras, update, reinstallation with and without dependencies, removal."""
    return (
        installing.install_extras(["openai", "mcp"]),
        installing.update_command(),
        installing.reinstall_command("apsw"),
        installing.reinstall_command("apsw", dependencies=False),
        installing.uninstall_command("klaw-x"),
    )


@pytest.mark.parametrize("installer", FROM_INDEX)
def test_from_an_index_packages_are_named(environment, installer):
    environment.install("klaw", made_by(installer, environment))
    assert commands() == FROM_INDEX[installer]


FROM_CLONE = {
    "pip": "PWD={address} pip install -c constraints.txt {options}'.[default,openai]'",
    "pipx": "PWD={address} pipx runpip environment install "
    "-c '{clone}/constraints.txt' {options}'{clone}[default,openai]'",
    "uv": "uv pip install {options}'.[default,openai]'",
    "uv tool": "uv tool install {options}--with 'klaw-x>=1' '.[default,openai]'",
}


@pytest.mark.parametrize("editable", [False, True])
@pytest.mark.parametrize("installer", FROM_CLONE)
def test_a_clone_is_installed_from_its_directory_with_what_is_installed_of_it(environment, installer, editable):
    environment.install_clone(made_by(installer, environment), editable=editable)
    enter = f"cd '{environment.clone}' && "
    options = "-e " if editable else ""
    address = environment.clone.as_uri().removeprefix("file://")
    command = FROM_CLONE[installer].format(address=address, options=options, clone=environment.clone)
    assert installing.install_extras(["openai"]) == enter + command
    update = f"{enter}git pull && {command.replace(',openai', '')}"
    assert installing.update_command() == installing.update_command("a") == update
    again = "" if "constraints.txt" in command else "--reinstall-package a "
    verb, _, rest = command.replace(",openai", "").partition("install ")
    assert installing.reinstall_command("a") == f"{enter}{verb}install {again}{rest}"


def test_a_path_that_is_an_address_as_it_is_needs_no_pwd(environment):
    environment.clone = environment.clone.rename(environment.clone.with_name("clone"))
    environment.install_clone()
    command = "pip install -c constraints.txt '.[default,mcp]'"
    assert installing.install_extras(["mcp"]) == f"cd {environment.clone} && {command}"


def test_a_plugin_of_an_index_is_reinstalled_without_klaw_if_that_is_from_a_clone(environment):
    environment.install_clone()
    environment.install("klaw-x", requires=["klaw>=0.1", "numpy"])
    environment.install("klaw-like", requires=["klawfish", "klaw-y"])
    assert installing.reinstall_command("klaw-x") == "pip install --force-reinstall --no-deps klaw-x"
    assert installing.reinstall_command("klaw-like") == "pip install --force-reinstall klaw-like"


def test_a_package_of_another_directory_is_named_with_it(environment, tmp_path):
    environment.install("klaw")
    other = tmp_path / "other"
    other.mkdir()
    (other / "pyproject.toml").touch()
    environment.install("klaw-x", origin={"url": other.as_uri(), "dir_info": {}})
    assert installing.reinstall_command("klaw-x").endswith(f" 'klaw-x @ {other.as_uri()}'")


@pytest.mark.parametrize(
    ("installer", "command"),
    [("pip", "{python} -m pip install 'klaw[mcp]'"), ("uv", "uv pip install -p {python} 'klaw[mcp]'")],
)
def test_a_python_that_is_not_the_shells_is_named(environment, monkeypatch, installer, command):
    environment.install("klaw", installer)
    monkeypatch.delenv("VIRTUAL_ENV")
    assert installing.install_extras(["mcp"]) == command.format(python=sys.executable)
    monkeypatch.setenv("CONDA_PREFIX", sys.prefix)
    assert sys.executable not in installing.install_extras(["mcp"])


def test_without_the_uv_that_made_an_environment_pip_is_called_and_comes_first_if_it_is_not_there(environment):
    environment.install("klaw", "uv")
    environment.programs.clear()
    assert installing.install_extras(["mcp"]) == "pip install 'klaw[mcp]'"
    (environment.prefix / "packages" / "pip.py").unlink()
    importlib.invalidate_caches()
    python = sys.executable
    assert installing.install_extras(["mcp"]) == f"{python} -m ensurepip && {python} -m pip install 'klaw[mcp]'"


def test_an_extra_is_installed_if_all_that_it_needs_is(environment):
    wants = ["d[grammars]>=1; extra == 'code'", "d; extra == 'documents'", "e; extra == 'e'"]
    environment.install("klaw", origin=environment.from_clone(), requires=wants)
    environment.install("d", requires=["f ; (python_version > '3') and extra == \"grammars\""])
    assert installing.update_command().endswith(" '.[documents]'")
    environment.install("f")
    assert installing.update_command().endswith(" '.[code,documents]'")


def test_a_uv_tool_keeps_its_packages(environment):
    klaw = f'{{ name = "klaw", editable = "{environment.clone}" }}'
    environment.install("klaw", "uv", environment.from_clone(editable=True))
    environment.made_by_uv_tool(
        klaw, '{ name = "x", git = "https://example.org/x" }', '{ name = "y", directory = "/y" }'
    )
    kept = "--with 'x @ git+https://example.org/x' --with /y"
    assert installing.install_extras(["mcp"]).endswith(f"&& uv tool install -e {kept} '.[mcp]'")
    assert installing.uninstall_command("x").endswith("&& uv tool install -e --with /y .")


@pytest.mark.parametrize("written", ['{ name = "other" }', "1", "]"])
def test_a_uv_receipt_without_klaw_is_ignored(environment, written):
    environment.install("klaw", "uv")
    environment.made_by_uv_tool(written)
    assert installing.install_extras(["mcp"]) == "uv pip install 'klaw[mcp]'"


def test_a_clone_that_was_deleted_is_not_named(environment):
    environment.install_clone()
    (environment.clone / "pyproject.toml").unlink()
    assert installing.install_extras(["openai"]) == "pip install 'klaw[openai]'"


def test_a_distribution_from_a_repository_is_named_by_its_address(environment):
    environment.install("klaw", origin=REPOSITORY)
    assert installing.install_extras(["mcp"]) == "pip install 'klaw[mcp] @ git+https://example.org/klaw.git'"


@pytest.mark.parametrize("origin", [None, [], {"url": 3, "dir_info": "x"}, {"url": "file:///x"}, {"dir_info": {}}])
def test_invalid_records_of_an_installer_are_ignored(environment, origin):
    environment.install("klaw", "", origin)
    (info,) = environment.prefix.glob("packages/klaw*")
    assert installing.install_extras(["mcp"]) == "pip install 'klaw[mcp]'"
    (info / "direct_url.json").write_text("no JSON", "utf-8")
    assert installing.install_extras(["mcp"]) == "pip install 'klaw[mcp]'"


@pytest.mark.usefixtures("environment")
def test_without_metadata_the_installer_is_pip():
    assert installing.install_extras(["mcp"]) == "pip install 'klaw[mcp]'"


def test_the_extras_of_the_default_configuration_together_become_default(environment):
    environment.install("klaw")
    assert catalogue.install_command([*catalogue.DEFAULT_EXTRAS, "ollama"]) == "pip install 'klaw[default,ollama]'"
    assert catalogue.install_command(["fts5", "ollama"]) == "pip install 'klaw[fts5,ollama]'"


_WORDS = ("pip install", "pip uninstall", "uv pip", "uv tool", "pipx", "install klaw")


def test_no_other_module_writes_a_command_of_an_installer():
    """Documentation may name them; what is printed has to fit what made the environment."""
    paths = [*ROOT.glob("klaw_*/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
    sources = {path: text for path in paths if any(words in (text := path.read_text("utf-8")) for words in _WORDS)}
    written = [str(path.relative_to(ROOT)) for path, text in sources.items() if _prints_a_command(text)]
    assert written == ["klaw_core/plugins/installing.py"]


def _prints_a_command(source):
    """Return whether a literal text of a module, other than a docstring, has the words of an installer."""
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and _says(node)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings)
    return any(words in text.value for text in texts if isinstance(text.value, str) for words in _WORDS)


def _says(node):
    return bool(node.body) and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)


def test_pip_finds_every_plugin_of_a_clone():
    written = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    plugins = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
    names = {path: tomllib.loads((path / "pyproject.toml").read_text("utf-8"))["project"]["name"] for path in plugins}
    assert [line for line in written if not line.startswith("#")] == [
        f"{name} @ file://${{PWD}}/plugins/{path.name}/." for path, name in names.items()
    ]


def test_uv_builds_a_changed_clone_again():
    """By default uv looks at pyproject.toml alone: a clone that was updated would stay as it was installed."""
    for file in (ROOT / "pyproject.toml", *ROOT.glob("plugins/*/pyproject.toml")):
        keys = [key["file"] for key in tomllib.loads(file.read_text("utf-8"))["tool"]["uv"]["cache-keys"]]
        sources = [source for key in keys if key.endswith("/**/*[!c]") for source in file.parent.glob(key)]
        assert "pyproject.toml" in keys, file
        assert any(source.suffix == ".py" for source in sources), file
        # What Python compiles as it runs is no change, or each environment would build everything again.
        assert not any(source.suffix == ".pyc" for source in sources), file
