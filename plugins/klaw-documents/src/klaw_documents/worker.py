"""The process that parses files. It reads requests from standard input and answers each with one line of JSON.

A request is a line of JSON, followed by the bytes of the file. The process exits at the end of its input, or after some
time without a request.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from klaw_core import Conversion, ConversionError

_IDLE_SECONDS = 30
_GRACE_SECONDS = 5
_NEARLY = 0.8  # a large allocation fails before the limit is reached
_MAX_CHARACTERS = 20_000_000
_PARSERS = ("pdf", "docx", "html", "epub", "notebook", "pptx", "xlsx", "mail")


def main() -> None:
    """Answer requests until there are no more."""
    memory_mb = int(sys.argv[1])
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    answers = os.fdopen(os.dup(1), "wb")
    # Discard the output of libraries, and do not let them read requests.
    with open(os.devnull, "r+b") as nowhere:  # noqa: PTH123
        for descriptor in (0, 1):
            os.dup2(nowhere.fileno(), descriptor)
    bound_memory(memory_mb)
    while (line := _line(requests)) is not None:
        request = json.loads(line)
        answer = answer_to(request, _bytes(requests, request["size"]), memory_mb)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()
        if answer.get("ended"):
            return


def answer_to(request: Mapping[str, Any], data: bytes, memory_mb: int) -> dict[str, Any]:
    """Parse a file; return its text, or the reason why it has none."""
    _bound_time(request["seconds"])
    try:
        return as_json(parse(request["parser"], data, request["name"]))
    except ConversionError as error:
        reason, keep = error.message, error.keep
    except MemoryError:
        return _too_large(memory_mb)
    except RecursionError:
        reason, keep = "is nested too deeply", False
    except ImportError as error:
        reason, keep = f"cannot be read without the package {error.name}", True
    except Exception as error:  # noqa: BLE001  # a parser may raise anything
        if _is_full(memory_mb):  # a C library may raise any error if it gets no memory
            return _too_large(memory_mb)
        first = str(error).strip().partition("\n")[0][:200]
        reason, keep = f"cannot be read: {type(error).__name__}{': ' if first else ''}{first}", False
    return answer_of(reason, keep=keep)


def _too_large(memory_mb: int) -> dict[str, Any]:
    return answer_of(f"needs more than {memory_mb:,} MiB of memory to read", keep=False, ended=True)


def answer_of(reason: str, *, keep: bool, ended: bool = False) -> dict[str, Any]:
    """Return the answer for a file that could not be read; ``ended`` means that this process ends now."""
    return {"error": " ".join(reason.encode("utf-8", "replace").decode().split()), "keep": keep, "ended": ended}


def parse(parser: str, data: bytes, name: str) -> Conversion:
    """Return the result of a parser for a file. Raise what the parser raises."""
    if parser not in _PARSERS:
        raise ValueError(parser)
    conversion: Conversion = import_module(f"klaw_documents.parsers.{parser}").parse(data, name)
    if len(conversion.text) > _MAX_CHARACTERS:
        raise ConversionError(f"has more than {_MAX_CHARACTERS:,} characters of text")
    return conversion


def as_json(conversion: Conversion) -> dict[str, Any]:
    """Return the answer for a conversion."""
    moment = conversion.created_at
    return {
        "text": conversion.text,
        "format": conversion.format,
        "metadata": conversion.metadata,
        "created_at": None if moment is None else moment.isoformat(),
    }


def bound_memory(memory_mb: int) -> None:
    """Limit the address space of this process. If the system does not support that, only the time is limited."""
    if sys.platform == "win32":
        return
    with suppress(ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_mb * 2**20, memory_mb * 2**20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _is_full(memory_mb: int) -> bool:
    """Return whether nearly all allowed address space was used; False if it is unknown."""
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/self/status").read_text("ascii", "replace").splitlines()
        peak = next(int(line.split()[1]) for line in lines if line.startswith("VmPeak:"))
        return peak >= _NEARLY * memory_mb * 1024
    return False


def _bound_time(seconds: float) -> None:
    """Limit the CPU time of this process, because the parent may have died and cannot kill it."""
    if sys.platform == "win32":
        return
    with suppress(ValueError, OSError):
        import resource

        used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(used + seconds + _GRACE_SECONDS), most))


def _line(requests: BinaryIO) -> bytes | None:
    """Return the next request, or None at the end of the input or after some time without a request."""
    # Windows can wait for sockets only. There this process ends with the parent, which closes the pipe.
    if sys.platform != "win32" and not select.select([requests], [], [], _IDLE_SECONDS)[0]:
        return None
    return requests.readline() or None


def _bytes(requests: BinaryIO, size: int) -> bytes:
    data = bytearray()
    while len(data) < size and (block := requests.read(size - len(data))):
        data += block
    return bytes(data)


if __name__ == "__main__":
    main()
