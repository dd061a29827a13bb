"""Print the tables of docs/networked.md."""

from __future__ import annotations

import argparse

from . import duplicates, replication, routing

TABLES = ("duplicates", "replication", "routing")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--large", action="store_true", help="ten million keys in eight processes")
    parser.add_argument("--cases", type=int, default=8)
    parser.add_argument("--seed", type=int, default=28)
    args = parser.parse_args()
    if "duplicates" in args.only:
        duplicates.report(args.seed, large=args.large, count=args.cases)
    if "replication" in args.only:
        replication.report(args.seed, args.cases)
    if "routing" in args.only:
        routing.report(args.seed)


if __name__ == "__main__":
    main()
