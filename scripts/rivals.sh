#!/usr/bin/env bash
# Installs the rivals of the benchmark one by one: one that does not build here is left out of the
# table, with a line that says so, and does not stop the others.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

while read -r requirement; do
    [[ -z "$requirement" || "$requirement" == \#* ]] && continue
    if ! .venv/bin/python -m pip install --quiet "$requirement"; then
        echo "bench: $requirement does not install on this machine; it is left out" >&2
    fi
done <requirements/bench.txt
