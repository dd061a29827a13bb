#!/usr/bin/env bash
# test.sh [--short] [OPTION of pytest...]: both test suites; fails if either does, and ends with the closing lines of both.
# --short leaves out the long tests of both, compiles the core's unit tests without optimisation, and builds the dashboard
# alone, where Node is installed. Else all pages are built where Node can be had, and tested in a browser; the closing
# lines say which are not, and why.
# Rust tests and pages are compiled while tools are installed. The Rust tests run beside the Python suite, those of the core
# as soon as they are compiled. Tests of pages come last: built before the first test, the pages took 7 of 28 minutes, and
# their linker left a core idle for 3 of them. The Python suite runs in WORKERS processes, by default two a core, since a
# third of its time it waits for servers. For long tests it is three for two cores: with two a whole run used 53 % of both.
# Files of tests stay together, since their tests share what they set up; tests/conftest.py says which come first.
# PROFILE compiles the other Rust tests, and the program that tests/service/resp starts: see Cargo.toml.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p build
export PROFILE="${PROFILE:-draft}"
core_options=(--profile test -- --include-ignored) pages=build-pages workers=$((3 * $(nproc) / 2))
if [[ "${1:-}" == --short ]]; then
    shift
    set -- -m "not long" "$@"
    core_options=(--profile "$PROFILE") pages=build-dashboard workers=$((2 * $(nproc)))
fi

# test_core [OPTION of cargo test...]: the core's unit tests.
test_core() { cargo test --locked --package fullbloom-core --lib "$@"; }

# test_rust [OPTION of cargo test...]: the other Rust tests.
test_rust() {
    cargo test --locked --profile "$PROFILE" --package fullbloom-core --test '*' "$@" &&
        cargo test --locked --profile "$PROFILE" --package fullbloom-server "$@"
}

# test_python LOG [OPTION of pytest...]: Python tests. Their exit code is 0, too, if there are none.
test_python() {
    local log="$1" code
    shift
    .venv/bin/python -m pytest --numprocesses "${WORKERS:-$workers}" --dist loadfile --no-loadscope-reorder "$@" 2>&1 | tee "$log"
    code=${PIPESTATUS[0]}
    return $((code == 5 ? 0 : code))
}
export -f test_core test_rust

# What runs in the background does not see Ctrl-C.
trap 'for job in $(jobs -p); do pkill --parent "$job"; kill "$job"; done 2>/dev/null' EXIT

test_rust --no-run >build/test-rust.log 2>&1 &
compiler=$!
nice bash -c 'test_core "$@"' test_core "${core_options[@]}" >build/test-core.log 2>&1 &
core=$!
"${MAKE:-make}" --no-print-directory "$pages" >build/test-pages.log 2>&1 &
builder=$!
"${MAKE:-make}" --no-print-directory build-test || exit
# Each worker would rewrite the assertions of all tests: on a first run one process does it for them.
[[ -d tests/__pycache__ ]] || .venv/bin/python -m pytest --collect-only --quiet "$@" >/dev/null
if ! wait "$compiler"; then
    cat build/test-rust.log
    exit 1
fi

nice bash -c test_rust >build/test-rust.log 2>&1 &
tests=$!
logs=(build/test-python.log) python=0
if [[ "$pages" == build-dashboard ]]; then
    wait "$builder" || grep -v '^make' build/test-pages.log
    test_python "${logs[0]}" "$@" || python=$?
else
    of_pages=(tests/docs/test_site_accessibility.py tests/docs/test_site.py tests/service/test_pages.py tests/web) # the longest first
    test_python "${logs[0]}" "${of_pages[@]/#/--ignore=}" "$@" || python=$?
    if wait "$builder"; then
        grep '^test-all:' build/test-pages.log
        [[ ! -f web/dashboard/dist/index.html ]] || export FULLBLOOM_PAGES=built
        logs+=(build/test-python-of-pages.log)
        test_python "${logs[1]}" "${of_pages[@]}" "$@" || python=$?
    else
        cat build/test-pages.log
        python=1
    fi
fi
wait "$core"
rust=$?
wait "$tests" || rust=$?
((rust == 0)) || cat build/test-core.log build/test-rust.log

echo
echo "Rust (exit $rust):"
grep --no-filename '^test result' build/test-core.log build/test-rust.log | sed 's/^/  /'
echo "Python (exit $python):"
tail -q -n 1 "${logs[@]}" | sed 's/^/  /'
PYTHONPATH=tests .venv/bin/python -m web.browser
((rust == 0 && python == 0))
