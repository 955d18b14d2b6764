"""The commands, tools and requests whose outputs are frozen. Those of a verb follow each other in one world."""

from __future__ import annotations

from klaw_mcp.clients import clients

#: The commands that have no case, and why.
WITHOUT = {
    "mcp": "it serves until its input ends; mcp.txt has its answers",
    "sync init": "it writes a key of chance; test_command.py of klaw-sync has it",
    "serve": "it serves until it is stopped; rest.txt has its answers",
}

#: For each verb its calls. ``<`` begins what is typed or piped in.
COMMANDS = {
    "init": ["init", "init --json", "init --here"],
    "index": [
        *("index notes --json", "index", "index notes/kiln.md", "index notes --force --json", "index nowhere"),
        "index notes --exclude sub/** --json",
    ],
    "embed": ["embed", "embed --json"],
    "search": [
        *(
            "search harbour",
            "search harbour --json",
            "search harbour --format csv",
            "search harbour --mode fts --explain",
        ),
        *("search kiln --mode vector --json", "search glaze --full", "search lantern --chat telegram_1 --json"),
        *("search 2020-02-20 --explain --json", "search zebra", "search harbour --where kind=plan --json"),
        *("search chart -c charts --json", "search harbour --per-document 1 --limit 2 --format files"),
        "search harbour --mode none",
        "search harbour --config stages.toml --explain --json",
    ],
    "list": [
        *("list", "list --json", "list --saved", "list --saved --json", "list --chats", "list --chats --json"),
        *("list --workspaces", "list --workspaces --json", "list notes/ --format csv", "list -c charts"),
    ],
    "recent": ["recent", "recent --json", "recent -n 1 --format csv"],
    "get": [
        "get notes/kiln.md",
        "get notes/kiln.md#Glaze",
        "get notes/kiln.md --json",
        "get notes/kiln.md notes/sub/* --json",
        "get 'notes/*' telegram_1/m1",
        "get nowhere",
        "get telegram_1/m1",
    ],
    "open": [
        *("open 1", "search kiln -n 1 --format files", "open 1 --print", "open 1 --json", "open 2", "open nowhere"),
    ],
    "ask": ["ask where is the lantern", "ask where is the lantern --json"],
    "links": ["links", "links notes/kiln.md --json", "links nowhere"],
    "save": [
        *("save 'The boat is red.' --date 2020-03-01 --json", "save -<The quay is long.", "list --saved --json"),
        "save 'The boat is blue.' --date 2020-03-02 --supersedes saved/2020-03-01/ --tag home",
        *("search boat --where tags=home", "save --supersedes saved/2019 x", "save"),
    ],
    "history": [
        "save 'The boat is red.' --date 2020-03-01 --tag home",
        "save 'The boat is blue.' --date 2020-03-02 --supersedes saved/2020-03-01/",
        *("history saved/2020-03-01/", "history saved/2020-03-02/ --json", "history saved/2019"),
    ],
    "logs": ["logs --chat telegram_1", "logs --chat telegram_1 --json", "logs -n 1", "logs --chat nobody"],
    "forget": ["forget notes/kiln.md --yes", "forget telegram_1/m0 --yes --json", "forget nowhere", "status --json"],
    "restore": [
        "restore notes/kiln.md",
        "forget notes/kiln.md --yes",
        "restore notes/kiln.md",
        "restore nowhere --json",
    ],
    "workspace": [
        *(
            "workspace list",
            "workspace list --json",
            "workspace exclude notes sub/**",
            "workspace exclude notes --json",
        ),
        *(
            "workspace describe notes 'Notes of the harbour'",
            "workspace describe notes",
            "workspace describe notes/x y",
        ),
        *("search kiln -n 1", "search kiln -n 1 --json", "workspace describe notes --remove --json"),
        *("workspace exclude notes sub/** --remove", "workspace share notes", "workspace list"),
        *("workspace share nope", "workspace unshare notes --json", "workspace unshare notes"),
        *("workspace rename notes papers", "workspace remove papers --yes"),
    ],
    "core": [
        *(
            "core get",
            "core get --json",
            "core import nowhere.md",
            "core get user name",
            "core set user city Bremen",
            "core set user city Rome --json",
        ),
        *("core delete user city", "core delete user city", "core get nobody", "core history", "core history --json"),
    ],
    "status": ["status", "status -v", "status --json"],
    "reindex": ["reindex", "reindex --json", "reindex --embedding none"],
    "doctor": ["doctor", "doctor --json", "doctor --fix"],
    "export": [
        *("export", "export all.jsonl", "export all.jsonl --json"),
        *("export --format okf", "export --format okf", "export --format okf bundle --json", "export --format okf -"),
    ],
    "import": [
        *(
            "export all.jsonl",
            "import all.jsonl",
            "import all.jsonl --data-dir other",
            "import all.jsonl --data-dir more --json",
        ),
        *("import all.jsonl --dry-run --json", "import nowhere", "import --from x y"),
    ],
    "plugins": [
        *("plugins", "plugins --json", "plugins new klaw-lines --kind chunker"),
        *("plugins new klaw-lines --kind chunker", "plugins new klaw-rows --kind source --json"),
        *("plugins new Lines --kind chunker", "plugins new klaw-lines --kind lines", "plugins newer"),
    ],
    "config": [
        *("config list", "config list --json", "config get memory.fusion.k", "config get nothing", "config path"),
        *(
            "config set memory.fusion.k 30",
            "config unset memory.fusion.k",
            "config trust .",
            "config path --json",
        ),
    ],
    "demo": ["demo"],
    "models": [
        *("models list", "models list --json", "models verify none", "models remove none", "models add none"),
        *("models try bge-small-en-v1.5 questions.jsonl", "models try none nowhere.jsonl"),
    ],
    "migrate": ["migrate sqlite:klaw.db nowhere"],
    "compact": ["compact --chat telegram_1", "compact --chat nobody --json"],
    "compress": [
        *("compress --dry-run", "compress --daily --json", "compress --list", "compress --list --json"),
        *("facts undo last", "compress --list", "compress --list --daily"),
    ],
    "context": [
        *("context 'where is the lantern'", "context 'where is the lantern' --json", "context harbour --explain"),
        "context harbour --budget 100 --chat telegram_1",
        "context 'does Ada live in Bremen' --explain",
    ],
    "facts": [
        *("facts", "facts list", "facts list --json", "facts search city --json", "facts history city", "facts stats"),
        *(
            "facts show f-yodnr2gqonbpfy46",
            "facts list --as-of 2020-03-01 --json",
            "facts pin f-vr7nxfywn56wqjza --json",
        ),
        *(
            "facts edit f-vr7nxfywn56wqjza 'Ada likes wheat bread' --json",
            "facts end f-vr7nxfywn56wqjza --to 2020-04-01",
        ),
        *("facts reopen f-vr7nxfywn56wqjza", "facts retract f-vr7nxfywn56wqjza --reason wrong", "facts stats --json"),
        *("facts extract --dry-run", "facts retry", "facts review p-1", "facts undo b-1", "facts import nowhere"),
    ],
    "people": ["people", "people list --json", "people merge owner Ada", "people split owner"],
    "remember": ["remember 'Ada sails on Sundays' --from 2020-03-01 --json", "remember ''"],
    "eval": ["eval --questions questions.jsonl --json", "eval"],
    "mcp": [*(f"mcp install {name} --print" for name in sorted(clients())), "mcp install nothing"],
    "serve": ["serve token", "serve stop", "serve stop --json", "serve warm"],
    "hook": [
        *("hook install claude-code --print", "hook session-start --timeout 60<{}"),
        *("hook pre-compact<{}", "hook stop<{}"),
        'hook user-prompt --timeout 60<{"prompt": "where does the lantern hang"}',
    ],
    "watch": ["watch --unit"],
    "sync": [
        *("sync run", "sync run nowhere", "sync join nowhere", "sync code", "sync status", "sync conflicts"),
        *("sync remove nobody", "sync doctor", "sync doctor nowhere"),
    ],
}

#: Calls of tools, in one memory, with at least one for each tool.
TOOLS = [
    ("memory_search", {"query": "harbour"}),
    ("memory_search", {"query": "zebra", "limit": 1}),
    ("memory_search", {"limit": 1}),
    ("memory_get", {"path": "notes/kiln.md"}),
    ("memory_get", {"path": "notes/kiln.md", "first_line": 3, "lines": 1}),
    ("memory_get", {"path": "nowhere"}),
    ("memory_context", {"message": "where is the lantern"}),
    ("memory_context", {"message": "does Ada live in Bremen"}),
    ("memory_status", {}),
    ("memory_core_get", {}),
    ("memory_core_update", {"section": "user", "key": "city", "value": "Bremen"}),
    ("memory_core_update", {"section": "nobody", "key": "city", "value": "Bremen"}),
    ("memory_core_delete", {"section": "user", "key": "city"}),
    ("memory_save", {"content": "The boat is red.", "source": "talk"}),
    ("memory_remember", {"fact": "Ada sails on Sundays", "valid_from": "2020-03-01"}),
    ("memory_facts", {"query": "where does Ada live"}),
    ("memory_facts", {"query": "city", "as_of": "2020-03-01", "limit": 1}),
    ("memory_forget", {"path": "notes/kiln.md"}),
    ("memory_nothing", {}),
]

#: Requests to ``klaw serve``, in one memory, with at least one for each operation; then one of each kind of error.
REST = [
    ("GET", "/api/search?query=harbour", None),
    ("GET", "/api/search?query=harbour&limit=1&mode=fts&explain=true", None),
    ("GET", "/api/search", None),
    ("POST", "/api/nearest", {"query": "kiln", "texts": ["rye bread", "a kiln"]}),
    ("GET", "/api/context?message=where+is+the+lantern", None),
    ("GET", "/api/context?message=lantern&part=stable&budget=100", None),
    ("GET", "/api/document?path=notes/kiln.md&first_line=3&lines=1", None),
    ("GET", "/api/document?path=nowhere", None),
    ("GET", "/api/rendered?path=notes/kiln.md", None),
    ("GET", "/api/links?path=notes/kiln.md", None),
    ("GET", "/api/documents?limit=2", None),
    ("GET", "/api/recent?limit=2", None),
    ("GET", "/api/collections", None),
    ("GET", "/api/sources", None),
    ("GET", "/api/status", None),
    ("GET", "/api/doctor", None),
    ("GET", "/api/extensions", None),
    ("GET", "/api/chats", None),
    ("GET", "/api/chats/telegram_1", None),
    ("POST", "/api/chats/telegram_1", {"role": "user", "content": "Thank you.", "ts": "2020-03-01T12:00:00Z"}),
    ("GET", "/api/core", None),
    ("PUT", "/api/core/user/city", {"value": "Bremen"}),
    ("DELETE", "/api/core/user/city", None),
    ("GET", "/api/facts", None),
    ("GET", "/api/facts?query=city", None),
    ("GET", "/api/facts/city", None),
    ("GET", "/api/tools", None),
    ("POST", "/api/tools/memory_search", {"arguments": {"query": "kiln", "limit": 1}}),
    ("POST", "/api/tools/nothing", {}),
    ("POST", "/api/memories", {"text": "The boat is red."}),
    ("PUT", "/api/memories", {"path": "notes/kiln.md", "text": "The boat is red."}),
    ("DELETE", "/api/document?path=notes/kiln.md", None),
    ("POST", "/api/restore", {"path": "notes/kiln.md"}),
    ("GET", "/api/index", None),
    ("POST", "/api/index", {}),
    ("GET", "/api/nothing", None),
    ("POST", "/api/search", {}),
]

#: Calls of the handlers of ``klaw mcp``.
MCP_TOOLS = [
    ("memory_search", {"query": "harbour", "limit": 1}),
    ("memory_get", {"path": "notes/kiln.md"}),
    ("memory_search", {}),
    ("memory_nothing", {}),
]
