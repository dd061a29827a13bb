"""The npm package opens every golden file and gives the answers, positions and bytes that Python gives.

Python writes its answers as JSON; ``web/fullbloom/test/same_bits.js`` compares, in Node and in a page
under a strict policy. ``make web`` builds the package; without it, or without Node or Chromium, the tests are
skipped.
"""

from __future__ import annotations

import base64
import http.server
import json
import operator
import random
import re
import shutil
import struct
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from golden import make
from support import ABSENT, SECRET, variants_with
from web.browser import find_obstacle

import fullbloom
from fullbloom import FullbloomError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support import Variant

PACKAGE = Path(__file__).parents[2] / "web" / "fullbloom"
GOLDEN = Path(make.__file__).parent
#: Random keys of each type, for each golden file.
KEYS = 1000
SAFE = 2**53
INLINE = """() => {
  const script = document.createElement("script");
  script.textContent = "window.inline = 1";
  document.head.append(script);
}"""


def draw_keys(seed: int) -> dict[str, list[Any]]:
    """Return random keys of every type that JavaScript has, by type; golden files contain some of each."""
    draw = random.Random(seed)
    alphabets = ("abcdefghij-0123456789", "aäöü日本語𝄞é")

    def text() -> str:
        return "".join(draw.choices(draw.choice(alphabets), k=draw.choice((0, 3, 12, 70, 300))))

    def part(depth: int = 0) -> Any:
        kinds: list[Callable[[], Any]] = [text, lambda: draw.randrange(100), lambda: draw.gauss(0, 10)]
        if depth < 3:
            kinds.append(lambda: tuple(part(depth + 1) for _ in range(draw.randrange(4))))
        return draw.choice(kinds)()

    known: dict[str, list[Any]] = {
        "string": [f"key-{i}" for i in range(40)],
        "number": [*range(60), 1.5, float("nan"), float("inf"), -0.5, 1e300],
        "bigint": [2**64, 2**53, -(2**63), 2**63, 2**127, -(2**127) - 1, 2**200],
        "bytes": [b"\xff", b""],
        "tuple": [("t", 1), (), (1, "x"), (3, "x")],
    }
    makers: dict[str, Callable[[], Any]] = {
        "string": text,
        "number": lambda: draw.choice(
            (draw.randrange(-SAFE + 1, SAFE), draw.randrange(500), draw.gauss(0, 1e6))
        ),
        "bigint": lambda: draw.choice((-1, 1)) * draw.getrandbits(draw.choice((8, 54, 63, 64, 65, 128, 300))),
        "bytes": lambda: draw.randbytes(draw.choice((1, 8, 40, 300))),
        "tuple": lambda: tuple(part() for _ in range(draw.randrange(5))),
    }
    return {kind: known[kind] + [makers[kind]() for _ in range(KEYS - len(known[kind]))] for kind in makers}


def spell(key: Any) -> Any:
    """Return a key as JSON that keeps every bit."""
    if isinstance(key, tuple):
        return {"tuple": [spell(part) for part in key]}
    if isinstance(key, float):
        return {"float": struct.pack(">d", key).hex()}
    if isinstance(key, bytes):
        return {"bytes": key.hex()}
    return {"int": str(key)} if isinstance(key, int) else {"str": key}


def show(value: Any) -> Any:
    """Return a value of info() as JavaScript prints it: its JSON has no integers beyond 2^53."""
    return f"{value}n" if isinstance(value, int) and abs(value) >= SAFE else value


def collect_answers(name: str, keys: dict[str, list[Any]]) -> dict[str, Any]:
    """Return Python's answers about a golden file."""
    data = (GOLDEN / f"{name}.bloom").read_bytes()
    secret = SECRET if "keyed" in name else None
    found = fullbloom.loads(data, secret=secret)
    instance: Any = found
    ask = instance.contains_many if hasattr(instance, "contains_many") else instance.includes_many
    return {
        "name": name,
        "secret": secret.hex() if secret else None,
        "info": {field: show(value) for field, value in instance.info().items()},
        "answers": {kind: "".join("01"[yes] for yes in ask(some)) for kind, some in keys.items()},
        "positions": {kind: [instance.positions(key) for key in some] for kind, some in keys.items()}
        if hasattr(instance, "positions")
        else None,
    }


def describe_recipe(variant: Variant) -> dict[str, Any]:
    """Create and fill a filter in Python; return its parameters, keys and bytes."""
    keys = make.contents(variant.id)
    capacity = 20 if variant.can("stages") else make.SMALL.get(variant.name, 120)
    options: dict[str, Any] = dict(make.NARROW.get(variant.name, {}))
    instance = variant.build_from(keys, capacity, 0.01, seed=7, **options)
    parameters: dict[str, Any] = {"seed": 7, **options}
    names = [name for name, _, _ in variant.row["parameters"]]
    if variant.can("worlds"):
        parameters |= {"included": [spell(key) for key in keys], "excluded": [spell(key) for key in ABSENT]}
    else:
        if not variant.can("build"):
            parameters[names[0]] = capacity
        elif variant.can("merge"):
            parameters["capacity"] = capacity
        if "fpr" in names:
            parameters["fpr"] = 0.01
        if variant.can("build"):
            parameters["keys"] = [spell(key) for key in keys]
    for name, choice in (("layout", variant.layout), ("kind", variant.kind)):
        if choice is not None:
            parameters[name] = choice
    values = None
    if variant.can("pairs") or variant.can("valued"):
        values = [variant.companion(key) for key in keys]
    return {
        "name": variant.id,
        "kind": variant.name,
        "parameters": parameters,
        "keys": [spell(key) for key in keys],
        "values": values,
        "file": base64.b64encode(instance.to_bytes()).decode(),
    }


def collect_errors() -> list[dict[str, str]]:
    """Return the errors that Python raises, by the name of the case in the package's test."""
    damaged = bytearray((GOLDEN / "bloom-classic.bloom").read_bytes())
    damaged[-1] ^= 1
    small, other = fullbloom.BloomFilter(100), fullbloom.BloomFilter(200)
    cases: dict[str, Callable[[], object]] = {
        "rate": lambda: fullbloom.BloomFilter(100, 1.5),
        "layout": lambda: fullbloom.BloomFilter(100, layout="square"),
        "no file": lambda: fullbloom.loads(b"no filter"),
        "damaged": lambda: fullbloom.loads(bytes(damaged)),
        "no secret": lambda: fullbloom.loads((GOLDEN / "bloom-keyed.bloom").read_bytes()),
        "large": lambda: fullbloom.loads((GOLDEN / "bloom-classic.bloom").read_bytes(), max_bytes=1),
        "incompatible": lambda: operator.ior(small, other),
        "secret": lambda: fullbloom.BloomFilter(100, secret=b"short"),
    }
    found = []
    for name, case in cases.items():
        with pytest.raises(FullbloomError) as raised:
            case()
        found.append({"name": name, "class": type(raised.value).__name__, "message": str(raised.value)})
    return found


@pytest.fixture(scope="module")
def node() -> str:
    """The path of Node; skips where Node or the built package is missing."""
    path = shutil.which("node")
    if path is None:
        pytest.skip("Node is missing; install Node 20 or newer")
    if not all((PACKAGE / name).is_file() for name in ("wasm/fullbloom_wasm_bg.wasm", "dist/node.js")):
        pytest.skip("the package for browsers is not built; run make web")
    return path


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file with Python's answers."""
    keys = draw_keys(7)
    answers = {
        "golden": str(GOLDEN),
        "keys": {kind: [spell(key) for key in some] for kind, some in keys.items()},
        "files": [collect_answers(path.stem, keys) for path in sorted(GOLDEN.glob("*.bloom"))],
        "recipes": [
            describe_recipe(variant)
            for need in ("add", "numbers", "build", "worlds")
            for variant in variants_with(need)
        ],
        "refusals": collect_errors(),
    }
    page = tmp_path_factory.mktemp("expected") / "expected.json"
    page.write_text(json.dumps(answers), encoding="utf-8")
    return page


def test_golden_files_and_new_filters_equal_pythons_in_node(node: str, expected: Path) -> None:
    tests = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.glob("test/*.test.js"))
    command = [node, "--test", "--test-reporter=spec", *tests]
    environment = {"FULLBLOOM_EXPECTED": str(expected), "PATH": str(Path(node).parent)}
    done = subprocess.run(
        command, cwd=PACKAGE, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    print(done.stdout[-6000:])
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


#: Runs before the blocks of the README: the file that one of them fetches, and a check of what comments say.
PROLOGUE = """
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
globalThis.fetch = async (path) => {
  assert.equal(path, "/leaked-passwords.bloom");
  return new Response(readFileSync(process.env.LEAKED));
};
let checked = 0;
const check = (value, wanted) => { assert.deepEqual(value, wanted); checked++; };
"""
EPILOGUE = "\nconsole.log(`${checked} checked`);\n"


def run_readme(node: str, folder: Path) -> str:
    """Run the JavaScript of the README, each value that a comment shows compared; return what it prints."""
    text = (PACKAGE / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```js\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    shown = re.compile(r"^(?!const|import|await)(.+?); // (true|false|\[[^\]]*\])(?:[:;].*)?$", re.MULTILINE)
    code = "".join(shown.sub(r"check(\1, \2);", block) for block in blocks)
    # Imports of one name in two blocks are one.
    names = sorted({name for found in re.findall(r"import \{(.*?)\}", code) for name in found.split(",")})
    code = re.sub(r"^import .*\n", "", code, flags=re.MULTILINE)
    program = folder / "readme.mjs"
    source = f'import {{ {", ".join(name.strip() for name in names)} }} from "{PACKAGE}/dist/node.js";'
    program.write_text(source + PROLOGUE + code + EPILOGUE, encoding="utf-8")
    leaked = folder / "leaked.bloom"
    fullbloom.BinaryFuseFilter.build(["123456", "qwerty"], 1e-6).save(leaked)
    environment = {"LEAKED": str(leaked), "PATH": str(Path(node).parent)}
    done = subprocess.run([node, str(program)], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_readme_javascript_returns_what_its_comments_say(node: str, tmp_path: Path) -> None:
    assert run_readme(node, tmp_path) == "4 checked\n"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the package, the golden files and Python's answers under a strict policy."""

    extensions_map: ClassVar = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".wasm": "application/wasm",
    }
    policy = (
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    expected: Path

    def translate_path(self, path: str) -> str:
        """Map the golden files and Python's answers; every other path is in the package."""
        folder, _, name = path.lstrip("/").rpartition("/")
        if path == "/expected.json":
            return str(self.expected)
        return str(GOLDEN / name) if folder == "golden" else super().translate_path(path)

    def end_headers(self) -> None:
        """Send the policy."""
        self.send_header("Content-Security-Policy", self.policy)
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def address(expected: Path) -> Iterator[str]:
    """The address of the package."""
    handler = type("BoundHandler", (Handler,), {"expected": expected})
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *given: handler(*given, directory=str(PACKAGE))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.skipif(
    (obstacle := find_obstacle("fullbloom", "index.js")) is not None, reason=obstacle or "nothing is missing"
)
def test_golden_files_and_new_filters_equal_pythons_in_a_page(new_tab: Any, address: str) -> None:
    page = new_tab(address).open("test/page.html")
    page.set_default_timeout(300_000)
    outcome = page.evaluate("window.outcome")
    print(*outcome.get("lines", []), sep="\n")
    assert "error" not in outcome, outcome["error"]
    assert len(outcome["lines"]) == 4
    # The policy is in force: it blocks a script within the page.
    page.evaluate(INLINE)
    page.wait_for_function("() => violations.length === 1")
    assert page.evaluate("[window.inline, violations.pop()]") == [None, "script-src-elem inline"]
