"""Replay a chat, day by day, as an agent would have written it: for a look at facts, or a trial of a language model.

python examples/replay_chat.py                             # three days of an invented chat
python examples/replay_chat.py chat.jsonl --days 3         # a message a line: ts, role, content
python examples/replay_chat.py locomo10.json --days 3      # the first conversation of LoCoMo's file
"""

import argparse
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path

from klaw_core import Chat, Memory, Message
from klaw_journals import format_ts

CHANNEL = "replay"
INVENTED = (
    ("2026-02-23T09:00:00Z", "user", "Hi! My name is Ada Lovelace. I live in Paris since 2020."),
    ("2026-02-23T09:01:00Z", "assistant", "Hello Ada. What are you working on?"),
    ("2026-02-23T09:02:00Z", "user", "The harbour gate launch is on March 12."),
    ("2026-02-24T09:00:00Z", "user", "The harbour gate launch has been moved to March 19."),
    ("2026-02-24T09:01:00Z", "assistant", "Noted. Shall I tell the crew?"),
    ("2026-02-25T09:00:00Z", "user", "Yes please. By the way, I moved to Lyon last week."),
)


def messages_of(path: Path | None) -> list[Message]:
    if path is None:
        records = [{"ts": ts, "role": role, "content": text} for ts, role, text in INVENTED]
    elif path.suffix == ".jsonl":
        records = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    else:
        records = list(locomo_records(json.loads(path.read_text("utf-8"))[0]["conversation"]))
    name = path.stem if path else "invented"
    given = [
        {"id": f"{name}-{number}", **record, "meta": {"channel": CHANNEL, "chat_id": name}}
        for number, record in enumerate(records, start=1)
    ]
    return sorted(map(Message.parse, given), key=lambda message: message.ts)


def locomo_records(conversation: dict) -> Iterator[dict]:
    """LoCoMo has two people; the second one is taken for the assistant."""
    for number in range(1, len(conversation)):
        said = conversation.get(f"session_{number}") or []
        for turn, item in enumerate(said):
            start = f"{conversation[f'session_{number}_date_time']} +0000"
            moment = datetime.strptime(start, "%I:%M %p on %d %B, %Y %z") + turn * timedelta(seconds=30)
            role = "assistant" if item["speaker"] == conversation["speaker_b"] else "user"
            yield {"ts": format_ts(moment), "role": role, "content": item["text"]}


def main(path: Path | None, days: int) -> None:
    by_day = [(day, list(said)) for day, said in groupby(messages_of(path), key=lambda message: message.ts.date())]
    with Memory.open() as memory:
        facts = dict(memory.extensions.all())["facts"]
        known = {line.message.id for line in memory.conversations.read(Chat.of(by_day[0][1][0].meta))}
        for day, messages in by_day[:days]:
            said = [message for message in messages if message.id not in known]
            memory.conversations.append_many(said)
            before = {fact.id for fact in facts.list(everything=True)}
            report = memory.index()  # also extracts facts, if `extensions.facts.extractor` says what with
            new = [fact for fact in facts.list(everything=True) if fact.id not in before]
            print(f"{day}: {len(said)} messages, {len(new)} new facts")
            print(*(f"  {fact.text}" for fact in new), *(f"  {notice}" for notice in report.notices), sep="\n")
        print(facts.compress())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--days", type=int, default=3)
    given = parser.parse_args()
    main(given.file, given.days)
