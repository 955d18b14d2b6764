"""Lines as the agents write them."""

import json
from pathlib import Path


def claude_line(role, content, *, at="2026-03-01T10:00:00.000Z", cwd="/home/ann/klaw", uuid="", **more):
    line = {"parentUuid": None, "isSidechain": False, "cwd": cwd, "type": role, "uuid": uuid, "timestamp": at}
    return json.dumps({**line, "message": {"role": role, "content": content}, **more}, separators=(",", ":"))


def codex_line(kind, payload, *, at="2026-03-01T10:00:00.000Z"):
    return json.dumps({"timestamp": at, "type": kind, "payload": payload})


def codex_message(role, text):
    kind = "output_text" if role == "assistant" else "input_text"
    return codex_line("response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]})


def write_lines(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path
