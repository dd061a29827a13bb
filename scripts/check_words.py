"""Check pages, docstrings and messages for phrases that a reader has to read twice.

Each phrase is a pattern with a remedy. Fenced blocks, inline code, addresses of links and generated parts
are not checked. In the Python package the texts are its string literals, which include docstrings; names of
functions that are participles are breaches, too. Prints each breach as ``file:line: message``; exit code 1
if there is any.
"""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: The pages that are checked. Add a page when it has been rewritten.
PAGES = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "docs/applications/admission.md",
    "docs/applications/blocks.md",
    "docs/applications/bloom-join.md",
    "docs/applications/cache-digests.md",
    "docs/applications/hyphenation.md",
    "docs/applications/index.md",
    "docs/applications/lsm.md",
    "docs/applications/novelty.md",
    "docs/applications/online-checks.md",
    "docs/applications/rate-limiter.md",
    "docs/applications/state-search.md",
    "docs/batches.md",
    "docs/cli-formats.md",
    "docs/cli-service.md",
    "docs/cli-show.md",
    "docs/cli.md",
    "docs/coverage.md",
    "docs/durability.md",
    "docs/engines/dask.md",
    "docs/engines/redis.md",
    "docs/engines/spark.md",
    "docs/errors.md",
    "docs/explanation/base-hashes.md",
    "docs/explanation/choosing.md",
    "docs/explanation/faq.md",
    "docs/explanation/hash-set.md",
    "docs/explanation/how-it-works.md",
    "docs/explanation/index.md",
    "docs/explanation/rates.md",
    "docs/explanation/wrong-yes.md",
    "docs/figures.md",
    "docs/format.md",
    "docs/how-to/cache-admission.md",
    "docs/how-to/columns.md",
    "docs/how-to/database.md",
    "docs/how-to/deduplicate.md",
    "docs/how-to/index.md",
    "docs/how-to/joins.md",
    "docs/how-to/leaked-passwords.md",
    "docs/how-to/operations.md",
    "docs/how-to/reconcile.md",
    "docs/how-to/seeing.md",
    "docs/how-to/signatures.md",
    "docs/how-to/stream.md",
    "docs/index.md",
    "docs/keys.md",
    "docs/migrating.md",
    "docs/networked.md",
    "docs/recipes.md",
    "docs/reconciliation.md",
    "docs/records.md",
    "docs/reference/api.md",
    "docs/reference/configuration.md",
    "docs/reference/http.md",
    "docs/reference/index.md",
    "docs/reference/metrics.md",
    "docs/reference/sql.md",
    "docs/removals.md",
    "docs/resp.md",
    "docs/scale.md",
    "docs/schemes.md",
    "docs/security.md",
    "docs/service.md",
    "docs/sets.md",
    "docs/theory.md",
    "docs/threads.md",
    "docs/tutorial.md",
    "web/fullbloom/README.md",
)
#: Patterns, and what to write instead. None of them has a place in good technical prose.
PHRASES = {
    r"told|tells? of": "reported, returned, shown, describes",
    r"stands|stood": "is, is stored, is in",
    r"anew": "again; or name the act: recreated, rebuilt, reconnected",
    r"(?:is|are) none": "is not a ..., does not exist",
    r"(?<!there\s)is no (?:filter|key|note|json|utf-8|unicode|error)": "is not a ..., does not exist",
    r"the way back|on the way there": "recovery, replay",
    r"asks? of|(?:is|are|was|were) asked (?:of|for)": "requested from, queried, required",
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
    r"(?:texts?|bytes|bits|files?|lines?|rows?) a (?:key|line|kind|filter|structure|second|call)": "per",
    r"br[eo]aks? off|broken? off": "closes, interrupts",
    r"do(?:es)? so of": "name the verb",
    r"taken? for known": "treated as duplicates",
}
#: A space of a phrase is also the end of a line, with the indentation of the next.
BANNED = {
    re.compile(rf"\b(?:{phrase})\b".replace(" ", r"(?: +|\n *)"), re.IGNORECASE): instead
    for phrase, instead in PHRASES.items()
}
#: A function is a verb; these describe a result or a state.
PARTICIPLES = re.compile(
    r"_*(?:asked|born|built|chosen|closed|done|drawn|filled|forgets|found|gathered|given|held|kept|known|left|"
    r"listed|looked|made|meant|named|opened|printed|refused|said|seen|sent|shaped|shown|sized|stands?|stood|"
    r"taken|tells|told|valued|waited|written)(?:_of)?"
)
SKIPPED = re.compile(
    r"^```.*?^```$|<!--[\w: ]*(?:begin|generated).*?<!--[\w: ]*end -->|`[^`]*`|\]\([^)]*\)",
    re.MULTILINE | re.DOTALL,
)


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


def main() -> int:
    """Check every page and module; return 0 if all pass."""
    found: list[str] = []
    modules = sorted((ROOT / "src" / "fullbloom").rglob("*.py"))
    for name in PAGES:
        found += check_page(name, (ROOT / name).read_text(encoding="utf-8"))
    for path in modules:
        found += check_module(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    print("\n".join(found) or f"{len(PAGES)} pages, {len(modules)} modules, no banned phrase")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
