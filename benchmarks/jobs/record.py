"""The record of the jobs: what each measured, when and on which machine."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from benchmarks import blocks, machine
from benchmarks.isolation import isolated
from benchmarks.model import ROOT
from benchmarks.report import markdown
from benchmarks.storage import load_record, save_record, today

FILE = Path(__file__).with_name("record.json")
IMAGES = ROOT / "docs" / "images"
INDEX = ROOT / "docs" / "how-to" / "index.md"
#: The seven jobs in the order of the index, and what each is about.
JOBS = {
    "deduplicate": "Drop duplicates from a huge file or stream, with the order kept",
    "stream": 'Ask "seen before?" in a stream, with a window that forgets',
    "database": "Check before you query a database, and count what it saved",
    "leaked_passwords": "Publish a big set, such as leaked passwords, as one small file",
    "joins": "Cut a distributed join, and find duplicates across machines",
    "reconcile": "Find the differences between two machines by exchanging kilobytes",
    "cache_admission": "Admit to a cache on the second request",
}
#: The jobs, and the pages about columns, Scrapy and Celery, whose figures are recorded in the same way.
MEASURED = [*JOBS, "columns", "scrapy", "celery"]
Record = dict[str, dict[str, Any]]


def load() -> Record:
    """The record, empty if nothing was measured yet."""
    return load_record(FILE)


def find_job(name: str) -> Any:
    """The module of a job."""
    return importlib.import_module(f"benchmarks.jobs.{name}")


def measure(name: str) -> None:
    """Measure a job in a process of its own, and save it."""
    described = machine.describe()
    figures = isolated(f"benchmarks.jobs.{name}:measure", {})
    kept = {key: described[key] for key in ("cpu", "cores", "memory_gib", "python", "commit")}
    save_record(FILE, load() | {name: {"date": today(), "machine": kept, "figures": figures}})


def render(name: str, text: str, record: Record) -> str:
    """The page of a job with the figures of the record."""
    entry, seen = record[name], record[name]["machine"]
    shown = find_job(name).show(entry["figures"])
    source = (
        f"`python -m benchmarks.jobs {name}`, {entry['date']}, {seen['cpu']}, {seen['cores']} cores, "
        f"{seen['memory_gib']:.0f} GiB, {seen['python']}."
    )
    content = "\n\n".join([shown.sentence, markdown(shown.columns, shown.rows), source])
    return blocks.replace_block(text, f"job {name}", content)


def render_index(text: str, record: Record) -> str:
    """The index of the how-to guides with the jobs and their headlines."""
    rows = [
        [
            f"{number}. [{title}]({find_job(name).PAGE.rpartition('/')[2]})",
            find_job(name).show(record[name]["figures"]).headline,
        ]
        for number, (name, title) in enumerate(JOBS.items(), 1)
        if name in record
    ]
    return blocks.replace_block(text, "jobs", markdown(["job", "measured"], rows))


def picture_of(name: str) -> Path:
    """The file of a job's picture."""
    return IMAGES / f"job-{name.replace('_', '-')}.svg"


def write(name: str, record: Record) -> None:
    """Write the page and the picture of a job."""
    job = find_job(name)
    page = ROOT / job.PAGE
    page.write_text(render(name, page.read_text(encoding="utf-8"), record), encoding="utf-8")
    picture_of(name).write_text(job.draw(record[name]["figures"]), encoding="utf-8")
