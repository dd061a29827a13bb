"""Check pages, docstrings, comments and messages for phrases that a reader has to read twice.

Each phrase is a pattern with a remedy. Checked are all pages in the repository except records, the string
literals of Python and the stub, which include docstrings, the string literals and comments of Rust, and the
texts of benchmark definitions. Fenced blocks, inline code, addresses of links and generated parts are left
out. Names of functions that are participles are breaches, too. Prints each breach as ``file:line: message``,
exit code 1 if there is any breach.
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Records are never edited.
RECORDS = ("benchmarks/record/", "tests/golden/")
#: The phrases themselves, and the tests of this check.
OWN = ("scripts/check_words.py", "tests/docs/test_words.py")
#: Patterns, and what to write instead. None of them has a place in good technical prose.
PHRASES = {
    r"told|tells? of": "reported, returned, shown, describes",
    r"stands|stood": "is, is stored, is in",
    r"anew": "again; or name the act: recreated, rebuilt, reconnected",
    r"(?:is|are) none": "is not a ..., does not exist",
    r"(?<!there\s)(?:is|are) no (?:filters?|keys?|notes?|json|utf-8|unicode|error|value|whole|bank)": (
        "is not a ..."
    ),
    r"the way back|on the way there": "recovery, replay",
    r"asks? of|asked (?:of|for)": "requested from, queried, required",
    r"held against": "checked against, compared with",
    r"for ever": "forever, permanently",
    r"look-ups?": "lookup",
    r"but for": "except",
    r"(?:is|are|was|were) to be": "must be, will be",
    r"(?:for|to|of|by) who": "for clients that ..., for anyone who ...",
    r"what (?:is|was) (?:there|none|due)|what (?:stands|vanishes|came)": "name the thing",
    r"unless given": "by default",
    r"made of (?:its|all) keys": "built from its keys",
    r"(?:is|are) of this machine": "is local",
    r"so long after": "the number of seconds after",
    r"rooms?(?! for)|house": "module, package; space",
    r"amid|thereof|therein|whereof": "during, of it",
    r"(?:texts?|bytes?|bits?|files?|lines?|rows?|ns|us|ms|cells?|counters?|keys|operations|probes?|words?)"
    r" an? (?:key|line|kind|filter|structure|second|call|lookup|add|slot|row|owner|rank)"
    r"(?!'s| (?:has|sets|is|of|that|supports))": "per",
    r"br[eo]aks? off|broken? off": "closes, interrupts",
    r"do(?:es)? so of": "name the verb",
    r"taken? for known": "treated as duplicates",
    r"lives? on": "is stored on, belongs to",
    r"wrong yes": "false positive",
    r"taken together": "together",
    r"caller's kind|in both colours": "container type of the keys; for threads and for asyncio",
    r"tells? (?:for each|whether|more|apart)": "returns, for each; reports whether; describes; distinguishes",
    r"at the door|the lies? that": "at once, in the first check; the false values that",
}
#: A space of a phrase is also the end of a line, with the indentation of the next.
BANNED = {
    re.compile(rf"\b(?:{phrase})\b".replace(" ", r"(?: +|\n *)"), re.IGNORECASE): instead
    for phrase, instead in PHRASES.items()
}
#: A function is a verb; these describe a result or a state.
PARTICIPLES = re.compile(
    r"_*(?:asked|aside|beside|born|broken|built|chosen|closed|counted|damaged|done|drawn|estimated|exchanged|filled|"
    r"forgets|found|gathered|given|held|hidden|joined|kept|known|left|listed|looked|lost|made|marked|meant|merged|"
    r"named|numbered|opened|packed|patched|planned|pooled|printed|recorded|refused|said|seen|sent|shaped|shown|"
    r"sized|sorted|stands?|stood|taken|tells|told|united|valued|waited|whole|written)(?:_of)?"
)
SKIPPED = re.compile(
    r"^```.*?^```$|<!--[\w: ]*(?:begin|generated).*?<!--[\w: ]*end -->|`[^`]*`|\]\([^)]*\)",
    re.MULTILINE | re.DOTALL,
)
#: Comments, texts, characters and lifetimes of Rust.
RUST = re.compile(
    r"""(?P<comment>//[^\n]*)|/\*.*?\*/|(?P<text>b?r(?P<hashes>#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*")"""
    r"""|'(?:\\.[^']*|[^\\'])'""",
    re.DOTALL,
)
#: Functions of Rust, except those that Python or JavaScript reads as attributes.
RUST_FUNCTIONS = re.compile(r"^ *(?:pub(?:\([^)]*\))? |const |async |unsafe )*fn (\w+)", re.MULTILINE)
SUFFIXES = (".md", ".rs", ".py", ".pyi", ".toml")


def extract_prose(text: str) -> str:
    """Return the sentences of a page: what is skipped leaves only its line ends."""
    return SKIPPED.sub(lambda skipped: "_" + "\n" * skipped[0].count("\n"), text)


def check_page(name: str, text: str) -> list[str]:
    """Return the breaches of a page, by line."""
    text, found = extract_prose(text), []
    for pattern, instead in BANNED.items():
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append((line, f"{name}:{line}: {' '.join(match[0].split())!r}; write: {instead}"))
    return [message for _, message in sorted(found)]


def check_rust(name: str, source: str) -> list[str]:
    """Return the breaches of a Rust file: its texts and comments, each in its lines."""
    parts, at = [], 0
    for token in RUST.finditer(source):
        between, found = source[at : token.start()], token[0]
        at = token.end()
        # Comments of successive lines are one text.
        parts.append("\0" * (not token["comment"] or bool(between.strip())) + "\n" * between.count("\n"))
        if token["comment"]:
            parts.append(re.sub(r"^//[/!]? ?", "", found))
        elif token["text"] and " " in found:
            parts.append(found)
        else:
            parts.append("\0" + "\n" * found.count("\n"))
    participles = [
        (source.count("\n", 0, found.start()) + 1, found[1])
        for found in RUST_FUNCTIONS.finditer(source)
        if PARTICIPLES.fullmatch(found[1])
    ]
    named = [f"{name}:{line}: {function!r}; name a function by a verb" for line, function in participles]
    return named + check_page(name, "".join(parts).replace("None", "null"))


def check_module(name: str, source: str) -> list[str]:
    """Return the breaches of a Python module: its texts and the names of its functions."""
    tree, text = ast.parse(source), ["\n"] * (source.count("\n") + 1)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            line = f" {node.value}".replace("\n", " ").replace("None", "null")
            text[node.lineno - 1] = line + text[node.lineno - 1]
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and PARTICIPLES.fullmatch(node.name)
            and not node.decorator_list  # a property is a noun
        ):
            found.append(f"{name}:{node.lineno}: {node.name!r}; name a function by a verb")
    return found + check_page(name, "".join(text))


def list_files() -> list[str]:
    """Return the names of the files in the repository, and of those that would be added to it."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted(name for name in names if name and (ROOT / name).is_file())


def check_file(name: str, text: str) -> list[str]:
    """Return the breaches of a file, by its suffix; nothing for a file without prose."""
    match Path(name).suffix:
        case ".md":
            # A released version of the changelog is never edited.
            return check_page(name, re.split(r"^## \[\d", text, maxsplit=1, flags=re.MULTILINE)[0])
        case ".rs":
            return check_rust(name, text)
        case ".py" | ".pyi":
            return check_module(name, text)
        case ".toml" if name.startswith("benchmarks/"):
            return check_page(name, text)
    return []


def main() -> int:
    """Check every file; return 0 if all pass."""
    found: list[str] = []
    checked = Counter[str]()
    for name in list_files():
        if name.startswith(RECORDS) or name in OWN or Path(name).suffix not in SUFFIXES:
            continue
        checked[Path(name).suffix] += 1
        found += check_file(name, (ROOT / name).read_text(encoding="utf-8"))
    counts = ", ".join(f"{number} {suffix}" for suffix, number in sorted(checked.items()))
    print("\n".join(found) or f"{counts}: no banned phrase")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
