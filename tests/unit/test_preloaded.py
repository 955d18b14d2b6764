"""A process that a preloaded one was forked into is as a new one, but for the modules that are there already."""

import os
import pty
import resource
import signal
import subprocess
import sys
import threading
import time
from difflib import unified_diff
from pathlib import Path

import preloaded
import pytest

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are preloaded on Linux only"),
    pytest.mark.one_of(3),
]

#: Prints what a process finds as it starts; what differs between any two processes is left out.
FOUND = """
import gc, locale, logging, os, resource, signal, sys, tempfile, threading, time

for name in ("stdin", "stdout", "stderr"):
    stream = getattr(sys, name)
    kept = (stream.buffer, getattr(stream.buffer, "raw", stream.buffer))
    print(name, *(getattr(stream, what) for what in ("name", "mode", "encoding", "errors", "line_buffering", "closed")))
    print(stream.write_through, stream.newlines, stream.isatty(), stream is getattr(sys, f"__{name}__"))
    print([(type(each).__name__, each.mode, each.name) for each in kept], kept[1].closefd, kept[1].fileno())
print(sys.argv, sys.orig_argv, sys.path, sys.executable, sys.prefix, sys.flags, sys.warnoptions, sys._xoptions)
print(__name__, __builtins__, __spec__, __package__, sorted(globals()), sys.modules["__main__"].__dict__ is globals())
print(os.getcwd())
print(*sorted(os.environ.items()), sep="\\n")
print(sorted(os.listdir("/proc/self/fd")), os.umask(0), time.tzname)
print([resource.getrlimit(kind) for name, kind in sorted(vars(resource).items()) if name.startswith("RLIMIT_")])
print(os.nice(0), os.sched_getaffinity(0), gc.get_threshold(), gc.isenabled(), tempfile.tempdir)
print(os.getppid(), os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid(), len(os.listdir("/proc/self/task")))
print([signal.getsignal(number) for number in range(1, 65)], signal.pthread_sigmask(signal.SIG_BLOCK, []))
print(threading.main_thread() is threading.current_thread(), threading.active_count(), threading.excepthook)
print(logging.root.handlers, sys.getrecursionlimit(), sys.getswitchinterval())
print(sys.excepthook, sys.displayhook, sys.gettrace(), sys.getprofile(), locale.getlocale(), sys.getdlopenflags())
"""


def preloaded_and_new(command, **options):
    """Start a program in both ways; return what the two printed, and how they ended.

    The environment is given: some libraries change that of this process without the knowledge of ``os.environ``.
    """
    options.setdefault("env", dict(os.environ))
    told = []
    for popen in (subprocess.Popen, preloaded._Popen):
        process = popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        out, errors = process.communicate(timeout=300)
        told.append(([*out.splitlines(), "", *errors.splitlines()], process.returncode))
    return told


def differences(ours, new):
    """Return how the two differ, line by line; empty if they do not."""
    told = [[*map(os.fsdecode, lines), f"status {status}"] for lines, status in (new, ours)]
    return "\n".join(unified_diff(*told, "new", "preloaded", n=0, lineterm=""))


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "programs" / "found.py"
    path.parent.mkdir()
    path.write_text(FOUND)
    return path


@pytest.mark.parametrize("kind", ["text", "file", "link"])
def test_a_preloaded_process_finds_what_a_new_one_finds(kind, program, tmp_path):
    if kind == "link":
        (tmp_path / "link.py").symlink_to(program)
    place = tmp_path / "there"
    place.mkdir()
    text = FOUND.replace('sys.modules["__main__"]', "__import__('__main__')")
    words = {"text": ["-c", text], "file": [str(program)], "link": ["../link.py"]}[kind]
    command = [sys.executable, *words, "one", "--two", "дача"]
    alike = preloaded_and_new(command, cwd=place, stdin=subprocess.DEVNULL)
    assert differences(*alike) == ""
    assert len(alike[0][0]) > 15

    changed = {**os.environ, "KLAW_OFFLINE": "1", "TZ": "Asia/Tokyo", "LÄNGE": "1", "HOME": str(tmp_path)}
    changed.pop("PATH")
    before = os.umask(0o027)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, limits[1]))
        alike = preloaded_and_new(command, env=changed, cwd=place, stdin=subprocess.PIPE, start_new_session=True)
    finally:
        os.umask(before)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert differences(*alike) == ""
    assert "('TZ', 'Asia/Tokyo')" in str(alike[0][0])
    assert "JST" in str(alike[0][0])


def test_a_preloaded_process_has_a_terminal_as_a_new_one_has(program):
    told = []
    for popen in (subprocess.Popen, preloaded._Popen):
        ours, theirs = pty.openpty()
        process = popen([sys.executable, program], stdin=theirs, stdout=theirs, stderr=theirs, env=dict(os.environ))
        os.close(theirs)
        text = b""
        with os.fdopen(ours, "rb", buffering=0) as terminal:
            while part := _read(terminal):
                text += part
        told.append((text.splitlines(), process.wait(300)))
    assert differences(*told) == ""
    assert b"True" in told[0][0][1]


def _read(terminal):
    try:
        return terminal.read(65536)
    except OSError:  # nobody has the other end open any more
        return b""


ENDS = {
    "nothing": "pass",
    "status": "import sys; sys.exit(7)",
    "text": "import sys; sys.exit('why')",
    "error": "1 / 0",
    "os._exit": "import os; os._exit(9)",
    "abort": "import os; os.abort()",
    "signal": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "interrupt": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "pipe": "import signal, os; signal.signal(signal.SIGPIPE, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGPIPE)",
    "handlers": "import atexit; atexit.register(print, 'handled'); print('before')",
    "thread": "import threading, time; threading.Thread(target=lambda: (time.sleep(0.1), print('after'))).start()",
    "no syntax": "def",
    "fork": "import os; print('child' if os.fork() == 0 else (os.wait()[1], 'parent'))",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_preloaded_process_ends_as_a_new_one_does(end, tmp_path):
    ours, new = preloaded_and_new([sys.executable, "-c", ENDS[end]], cwd=tmp_path)
    assert (ours[0][0], ours[0][-1], ours[1]) == (new[0][0], new[0][-1], new[1])


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGSTOP])
def test_a_signal_reaches_the_program_itself(how, tmp_path):
    text = "import os, sys; print(os.getpid(), os.getppid(), flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", text]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout.readline() == f"{process.pid} {os.getpid()}\n"
        process.send_signal(how)
        if how == signal.SIGSTOP:
            assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
            process.kill()
    assert process.returncode == -(signal.SIGKILL if how == signal.SIGSTOP else how)


def test_a_signal_right_after_the_start_is_not_lost(tmp_path):
    for _ in range(20):
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=-1, cwd=tmp_path)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
        assert process.returncode == -signal.SIGINT


LIST = "import os, sys; print(*sys.modules); print(len(os.listdir('/proc/self/task')))"


def modules(tmp_path, about="", **options):
    """Return the names of the modules that a program has without an import, and its number of threads."""
    path = tmp_path / "list.py"
    path.write_text(f"{LIST}  # {about}\n")
    printed = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True, **options).stdout
    names, threads = printed.splitlines()
    return set(names.split()), int(threads)


def test_what_programs_need_is_imported_and_no_thread_is_lost(tmp_path):
    names, threads = modules(tmp_path)
    assert {"klaw_core.memory", "klaw_core.cli.search", "numpy", "apsw", "klaw_tools.context"} <= names
    assert threads == 1


def test_what_servers_need_is_imported_and_no_thread_is_lost(tmp_path):
    import fork_server

    pytest.importorskip("klaw_serve")
    pytest.importorskip("klaw_mcp")
    names, threads = modules(tmp_path, about=" ".join(sorted(fork_server.LATE)))
    assert {"klaw_serve.app", "klaw_mcp.server", "mcp", "anyio._backends._asyncio"} <= names
    assert threads == 1


CACHES = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
klaw = sorted(name for name in sys.modules if name.startswith("klaw_"))
for name in klaw:
    for key, value in sorted(vars(sys.modules[name]).items()):
        if hasattr(value, "cache_info") and value.__module__ == name:
            print(key, value.cache_info().currsize)
print(*klaw)
"""


def test_what_is_imported_was_not_used(tmp_path):
    """Nothing is remembered that a program would have to find out itself, by its own environment."""
    path = tmp_path / "caches.py"
    path.write_text(CACHES)
    ours = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True).stdout
    names = ours.splitlines()[-1].split()
    assert len(names) > 200
    assert ours.count("\n") > 20
    command = [sys.executable, path, *names]
    assert ours == preloaded._Popen(command, stdout=subprocess.PIPE, text=True).communicate()[0]


@pytest.mark.parametrize(
    "options",
    [
        {"env": {**os.environ, "PYTHONHASHSEED": "1"}},
        {"env": {**os.environ, "PYTHONPATH": "/nowhere"}},
        {"env": {**os.environ, "LC_ALL": "C.UTF-8", "LANG": "C"}},
        {"preexec_fn": lambda: None},
        {"close_fds": False},
        {"pass_fds": [0]},
        {"umask": 0o22},
        {"process_group": 0},
    ],
)
def test_what_is_out_of_the_ordinary_starts_from_nothing(options, tmp_path):
    assert "klaw_core" not in modules(tmp_path, **options)[0]


@pytest.mark.cold_start
def test_a_test_can_ask_for_processes_that_start_from_nothing(tmp_path):
    assert "klaw_core" not in modules(tmp_path)[0]


@pytest.mark.parametrize(
    "words",
    [
        ["-X", "utf8", "-c", "import klaw_core"],
        ["-c", "import sys; assert 'klaw_core' not in sys.modules"],
        ["-m", "pytest", "--version"],
        ["-V"],
    ],
)
def test_options_of_python_and_what_looks_at_modules_start_from_nothing(words, tmp_path, monkeypatch):
    monkeypatch.setattr(preloaded.Server, "_ask", lambda *_: pytest.fail("it was preloaded"))
    assert subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, check=True).stdout is not None


def test_a_file_that_an_import_would_find_first_is_found(tmp_path):
    (tmp_path / "numpy.py").write_text("print('mine')\n")
    done = subprocess.run(
        [sys.executable, "-c", "import numpy"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "mine\n"


def test_a_directory_that_is_not_there_is_an_error_as_ever(tmp_path):
    with pytest.raises(FileNotFoundError):
        subprocess.run([sys.executable, "-c", ""], cwd=tmp_path / "nowhere", check=True)


def test_threads_can_start_processes(tmp_path):
    told = {}

    def start(number):
        command = [sys.executable, "-c", f"import os; print({number}, os.getpid())"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
        told[number] = (process.communicate(timeout=300)[0], process.pid, process.returncode)

    threads = [threading.Thread(target=start, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == {number: (f"{number} {pid}\n", pid, 0) for number, (_, pid, _) in told.items()}
    assert len(told) == 8


OWNER = f"""
import os, subprocess, sys
sys.path.insert(0, {str(Path(preloaded.__file__).parent)!r})
import preloaded
assert subprocess.run([sys.executable, "-c", "print(1)"], stdout=subprocess.PIPE).stdout == b"1\\n"
print(preloaded.SERVING._process.pid, flush=True)
"""


@pytest.mark.parametrize("end", ["sys.stdin.read()", "os.kill(os.getpid(), 9)", "raise SystemExit"])
def test_a_server_ends_with_the_process_that_has_started_it(end, tmp_path):
    command = [sys.executable, "-c", OWNER + end]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        server = Path("/proc", process.stdout.readline().strip())
        assert server.name.isdecimal()
        process.kill()
    while server.exists() and ") Z " not in (server / "stat").read_text():  # the watchdog of pytest ends this
        time.sleep(0.01)
    assert process.returncode in {0, 1, -signal.SIGKILL}


def test_a_server_that_died_is_replaced(tmp_path):
    """What is asked meanwhile starts from nothing."""
    assert "numpy" in modules(tmp_path)[0]
    preloaded.SERVING._process.kill()
    preloaded.SERVING._process.wait()
    assert "numpy" not in modules(tmp_path)[0]
    assert "numpy" in modules(tmp_path)[0]
