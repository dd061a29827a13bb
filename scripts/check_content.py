"""Checks the content of the repository's text files.

No addresses of package registries, no paths of the machine it was written on, no former name of the
project, no file beyond 500 lines (generated, recorded and legal ones aside), no ``unsafe`` in Rust without a
``SAFETY`` comment, nothing but pinned names in ``requirements/``. Prints each breach as
``file:line: message``; exit code 1 if any.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 500
UNLIMITED = re.compile(
    r"(?:fuzz/)?Cargo\.lock|web/package-lock\.json|LICENSE|THIRD-PARTY-LICENSES|src/fullbloom/_core\.pyi|benchmarks/(?:record/.*|\w+/record\.json)|tests/golden/.*"
    r"|docs/figures\.md|docs/images/figures-\w+\.svg"
)
# The project's first name is allowed where bytes depend on it, and in the changelog.
FIRST_NAME = re.compile(r"bloomer[y]", re.IGNORECASE)
FROZEN = re.compile(r"bloomer[y](?: secret fingerprint| filter secret|-manifest )")
# Each name has a bracket, so that this file passes its own check.
REGISTRY = re.compile(r"https?://[\w.-]*(?:pyp[i]|pythonhoste[d]|crates[.]io|artifac[t]|mirro[r]|nexu[s])")
MACHINE = re.compile(r"(?<![\w.~-])/(?:work|root|home/\w+|Users/\w+)/")
PIN = re.compile(r"[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*|-r [a-z]+\.txt|#.*|")
OPENS_UNSAFE = re.compile(r"\bunsafe\s*(?:\{|impl\b)")
SAFETY_WITHIN = 8


def list_files() -> list[Path]:
    """Return the files that are in the repository or would be added to it; of links only their targets."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = (ROOT / name for name in names.split("\0") if name)
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


def read_lines(path: Path) -> list[str] | None:
    """Return the lines of a text file; None for any other file."""
    data = path.read_bytes()
    if b"\0" in data[:8192]:
        return None
    try:
        return data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return None


def find_unexplained_unsafe(lines: list[str]) -> list[int]:
    """Return the line numbers of ``unsafe`` blocks without ``SAFETY`` just above or beside them."""
    found = []
    for number, line in enumerate(lines, start=1):
        if OPENS_UNSAFE.search(line.split("//")[0]):
            before = lines[max(0, number - SAFETY_WITHIN) : number]
            if not any("SAFETY" in near for near in before):
                found.append(number)
    return found


def check_file(name: str, lines: list[str]) -> list[str]:
    """Return the breaches of one file."""
    breaches = []
    if len(lines) > LONGEST and not UNLIMITED.fullmatch(name):
        breaches.append(f"{name}:{len(lines)}: longer than {LONGEST} lines; split it by noun")
    for number, line in enumerate(lines, start=1):
        if name != "Cargo.lock" and REGISTRY.search(line):
            breaches.append(f"{name}:{number}: address of a registry")
        if MACHINE.search(line):
            breaches.append(f"{name}:{number}: path of one machine")
        if name != "CHANGELOG.md" and FIRST_NAME.search(FROZEN.sub("", line)):
            breaches.append(f"{name}:{number}: the project's first name; it is Fullbloom")
        if name.startswith("requirements/") and not PIN.fullmatch(line):
            breaches.append(f"{name}:{number}: must be name==version")
    if name.endswith(".rs"):
        breaches += [f"{name}:{number}: unsafe without SAFETY" for number in find_unexplained_unsafe(lines)]
    return breaches


def main() -> int:
    """Check every file; return 0 if all pass."""
    breaches = []
    files = list_files()
    for path in files:
        if (lines := read_lines(path)) is not None:
            breaches += check_file(path.relative_to(ROOT).as_posix(), lines)
    print("\n".join(breaches) or f"{len(files)} files, nothing that does not belong")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
