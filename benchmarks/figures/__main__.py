"""`python -m benchmarks.figures`: measures every figure and writes the record, the page and the plots.

`--page`: writes the page and the plots from the record that is there.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.figures import page, plots, record


def main() -> int:
    """Exit status 1 if a row differs without a reason."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.figures", description=__doc__)
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page and the plots")
    if parser.parse_args().page:
        found = record.load()
    else:
        found = record.measure_all()
        record.save(found)
    subjects = record.list_subjects()
    page.PAGE.write_text(page.render(found, subjects), encoding="utf-8")
    for name in plots.PLOTS:
        (plots.IMAGES / f"{name}.svg").write_text(plots.render(name, found), encoding="utf-8")
    wrong = [row for rows in found.rows.values() for row in rows if not (row.agrees or row.why)]
    for row in wrong:
        print(
            f"{row.what} ({row.parameters}): published {row.published}, measured {row.measured:.6g}, no "
            "reason",
            file=sys.stderr,
        )
    print(f"docs/figures.md: {sum(map(len, found.rows.values()))} rows, {found.seconds:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
