"""The files of a model, damaged or made to harm: an error or a model, soon, and the process lives.

Each case is a child: what a native library does to itself is its end alone. ``tests/fuzz`` looks for more, guided.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import struct
from contextlib import suppress
from pathlib import Path

import pytest

from klaw_core import KlawError

SAMPLE = 8
_MAX_BYTES = 6 << 30


def lean() -> None:
    """Let a case have no more memory than a careful machine would give it."""
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_BYTES, _MAX_BYTES))


@pytest.mark.parametrize("name", ["manifest", "tokenizer", "graph"])
def test_a_damaged_file_of_a_model_ends_nothing(campaign, cases, make_target, name):
    """With the checksum that fits: whoever makes a model makes its manifest."""
    target = make_target(name)
    problems = []
    for number, dice in cases.seeded(f"model {name}", SAMPLE):
        data = dice.choice([seed for seed in target.seeds if seed] or [b""])
        for _ in range(dice.randrange(1, 5)):
            data = campaign.damaged(data, dice)

        def run(data=data) -> None:
            target.run(data)

        if problem := campaign.in_child(run):
            problems.append((number, problem[-600:]))
    assert problems == []


OUTSIDE = ("/etc/passwd", "../outside", "a/../../outside", "\x00", "", ".", "..", "model.json", "sub/../../../x", "~/x")


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_manifest_names_no_file_outside_its_directory(tmp_path, name):
    from klaw_models import read_manifest

    directory = tmp_path / "model"
    directory.mkdir()
    (tmp_path / "outside").write_bytes(b"x")

    def write(name, *others):
        files = {file: {"sha256": hashlib.sha256(b"x").hexdigest()} for file in (name, *others)}
        content = {
            "format": 1, "name": "mine", "revision": "1", "license": "", "dimension": 8, "window_tokens": 32,
            "max_tokens": 30, "max_positions": 64, "pooling": "mean", "query_prefix": "", "document_prefix": "",
            "model": name, "tokenizer": name, "files": files, "inputs": {"ids": "a", "mask": "b"},
        }  # fmt: skip
        (directory / "model.json").write_text(json.dumps(content))

    write("inside")
    assert list(read_manifest(directory).files) == ["inside"]
    for names in ((name,), ("inside", name)):
        write(*names)
        try:
            read = read_manifest(directory)
        except KlawError:
            continue
        for named in read.files:
            assert Path(os.path.realpath(directory / named)).is_relative_to(directory.resolve())


def _graph(kind: str) -> bytes:
    """Return a graph that is made to harm."""
    from onnx import TensorProto, helper

    ids = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "t"]) for name in ("input_ids", "attention_mask")
    ]
    out = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "t", 2])
    table = helper.make_tensor("table", TensorProto.FLOAT, [8, 2], [0.5] * 16)
    gather = helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])
    nodes, tables = [gather], [table]
    if kind in {"outside", "absolute"}:
        place = "../../../../../../etc/passwd" if kind == "outside" else "/etc/passwd"
        table.data_location = TensorProto.EXTERNAL
        table.ClearField("float_data")
        for key, value in (("location", place), ("offset", "0"), ("length", "64")):
            entry = table.external_data.add()
            entry.key, entry.value = key, value
    elif kind == "huge":
        shape = helper.make_tensor("shape", TensorProto.INT64, [3], [1 << 20, 1 << 20, 2])
        nodes, tables = [helper.make_node("ConstantOfShape", ["shape"], ["last_hidden_state"])], [shape]
    elif kind == "nan":
        tables = [helper.make_tensor("table", TensorProto.FLOAT, [8, 2], [float("nan")] * 16)]
    elif kind == "negative":
        tables = [helper.make_tensor("table", TensorProto.FLOAT, [1, 2], [0.5] * 2)]
    elif kind == "unknown":
        nodes = [helper.make_node("Nothing", ["input_ids"], ["last_hidden_state"], domain="evil")]
    made = helper.make_graph(nodes, "g", ids, [out], tables)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("kind", ["outside", "absolute", "huge", "nan", "negative", "unknown"])
def test_a_graph_that_is_made_to_harm_does_none(campaign, make_target, kind):
    pytest.importorskip("onnx")
    graph = make_target("graph")
    data = _graph(kind)

    def run() -> None:
        lean()
        graph.run(data)

    assert campaign.in_child(run) == ""


def test_a_damaged_header_of_a_gguf_file_ends_nothing(campaign, cases, tmp_path):
    from klaw_embed_llamacpp.header import Header

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    pairs = (
        text("general.architecture") + struct.pack("<I", 8) + text("bert"),
        text("bert.context_length") + struct.pack("<II", 4, 512),
        text("words") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
        text("scores") + struct.pack("<IIQ2f", 9, 6, 2, 0.5, 0.5),
    )
    sound = b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs)
    path = tmp_path / "x.gguf"
    path.write_bytes(sound)
    assert Header.read(path)
    for _, dice in cases.seeded("gguf", 300):
        data = sound
        for _ in range(dice.randrange(1, 4)):
            data = campaign.damaged(data, dice)
        path.write_bytes(data)
        with suppress(KlawError):
            Header.read(path)
