#!/usr/bin/env bash
# test.sh [OPTION of pytest...]: both test suites; fails if either does, and ends with the closing lines of both. The
# Python suite runs on all cores, or on WORKERS of them; files of tests stay together, since their tests share what
# they set up.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p build

cargo test --locked --package fullbloom-core --package fullbloom-server 2>&1 | tee build/test-rust.log
rust=${PIPESTATUS[0]}
.venv/bin/python -m pytest --numprocesses "${WORKERS:-auto}" --dist loadfile "$@" 2>&1 | tee build/test-python.log
python=${PIPESTATUS[0]}

echo
echo "Rust (exit $rust):"
grep '^test result' build/test-rust.log | sed 's/^/  /'
echo "Python (exit $python):"
tail -n 1 build/test-python.log | sed 's/^/  /'
((rust == 0 && python == 0))
