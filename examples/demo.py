"""The main job on real input: every line of Python's own sources and of the installed packages.

De-duplicates the lines with the command line and checks the answer exactly against a set, builds a filter
of the distinct lines, saves it, opens it again by mapping the file, measures the rate of false positives with
keys that were never added, and prints what all of that took beside the built-in set. Exit code 1 if anything
is wrong.

Run it with ``make demo``; takes about half a minute.
"""

import math
import platform
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import fullbloom

FPR = 0.001
ABSENT = 1_000_000


def sources() -> Iterator[Path]:
    """The Python files of the standard library and of site-packages, in a fixed order."""
    for name in ("stdlib", "purelib"):
        folder = Path(sysconfig.get_path(name))
        yield from sorted(path for path in folder.rglob("*.py") if path.is_file())


def gather(target: Path) -> None:
    """Writes the lines of all sources to one file, which becomes the input of the job."""
    with target.open("wb") as out:
        for path in sources():
            text = path.read_bytes().replace(b"\r", b"")
            out.write(text if text.endswith(b"\n") or not text else text + b"\n")


def dedup_exactly(path: Path) -> list[bytes]:
    """The distinct lines in order of first appearance, by a dict: what the command line must print."""
    with path.open("rb") as lines:
        return list(dict.fromkeys(line.rstrip(b"\n") for line in lines))


def dedup_by_command(path: Path, output: Path, *options: str) -> tuple[float, list[bytes]]:
    """Runs ``fullbloom dedup``; seconds and the lines it kept."""
    command = [sys.executable, "-m", "fullbloom", "dedup", *options, "--quiet", "-o", str(output), str(path)]
    start = time.perf_counter()
    subprocess.run(command, check=True)
    seconds = time.perf_counter() - start
    return seconds, output.read_bytes().split(b"\n")[:-1]


def ns_per_key(work: Callable[[], object], keys: int) -> float:
    """Nanoseconds a key of one run."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) / keys * 1e9


def require(truth: bool, claim: str) -> None:
    """Prints a claim that holds; ends the demo when it does not."""
    if not truth:
        sys.exit(f"WRONG: {claim}")
    print(f"  ok  {claim}")


def check_dedup(path: Path, folder: Path) -> list[bytes]:
    """De-duplicates in both modes and compares with the exact answer, which is returned."""
    distinct = dedup_exactly(path)
    size = path.stat().st_size
    seconds, kept = dedup_by_command(path, folder / "exact.txt", "--verify")
    print(f"dedup --verify: {size / seconds / 1e6:.0f} MB/s with start-up, {len(kept):,} lines kept")
    require(kept == distinct, "the lines kept are those of an exact de-duplication, in order")
    seconds, kept = dedup_by_command(path, folder / "kept.txt", "--expected", str(len(distinct)))
    lost = len(distinct) - len(kept)
    print(
        f"dedup:          {size / seconds / 1e6:.0f} MB/s with start-up, {len(kept):,} lines kept, "
        f"{lost} lost"
    )
    require(
        len(set(kept)) == len(kept) and set(kept) <= set(distinct), "no line is kept twice, none is made up"
    )
    # At most a millionth of the new lines is lost on average; five deviations of a Poisson count.
    mean = len(distinct) * 1e-6
    require(
        lost <= mean + 5 * math.sqrt(mean) + 1, "lines lost by false positives are within the requested rate"
    )
    return distinct


def measure(keys: list[bytes], folder: Path) -> None:
    """Builds, saves, maps, measures, and prints the table."""
    absent = [b"never a line of source \0 %d" % i for i in range(ABSENT)]
    exact: set[bytes] = set()
    rows = [("set", ns_per_key(lambda: exact.update(keys), len(keys)))]
    seen = fullbloom.BloomFilter(len(keys), fpr=FPR)
    rows.append(("filter", ns_per_key(lambda: seen.update(keys), len(keys))))
    path = folder / "lines.bloom"
    seen.save(path)
    start = time.perf_counter()
    mapped = fullbloom.open(path)
    opened = (time.perf_counter() - start) * 1e6
    require(all(mapped.contains_many(keys)), "the mapped file finds every key")
    wrong = sum(mapped.contains_many(absent))
    measured = wrong / ABSENT
    bound = FPR + 5 * math.sqrt(FPR * (1 - FPR) / ABSENT)
    require(measured <= bound, f"{wrong:,} of {ABSENT:,} absent keys are found: at most {bound:.3%} is due")
    lookups = {
        "set": ns_per_key(lambda: [key in exact for key in keys], len(keys)),
        "filter": ns_per_key(lambda: mapped.contains_many(keys), len(keys)),
    }
    size = {
        "set": sys.getsizeof(exact) + sum(map(sys.getsizeof, exact)),
        "filter": path.stat().st_size,
    }
    rates = {"set": "0 / 0", "filter": f"{FPR:.3%} / {measured:.3%}"}
    print(
        f"\n{'':8}{'keys':>12}{'bytes':>14}{'fpr asked / measured':>24}"
        f"{'add ns/key':>12}{'look up ns/key':>16}"
    )
    for name, adding in rows:
        rate = rates[name]
        row = f"{name:8}{len(keys):>12,}{size[name]:>14,}{rate:>24}"
        print(f"{row}{adding:>12.0f}{lookups[name]:>16.0f}")
    print(f"\nThe file of {size['filter']:,} bytes was opened in {opened:.0f} microseconds.")
    print(f"A set of these keys takes {size['set'] / size['filter']:.0f} times the memory.")


def main() -> None:
    """Runs the demo in a temporary folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "lines.txt"
        gather(path)
        version = platform.python_version()
        print(
            f"Input: the sources of Python {version} and its packages, {path.stat().st_size / 1e6:.0f} MB\n"
        )
        measure(check_dedup(path, folder), folder)


if __name__ == "__main__":
    main()
