#!/usr/bin/env bash
# Runs the tests of keys, object reads and threads on further interpreters: interpreters.sh [--free-threaded]
# PYTHON... One that is not there is named and passed over. The extension of `make build` serves all that have
# the GIL (stable ABI); for one without, a wheel of its own is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset VIRTUAL_ENV

wanted=False
if [[ "${1:-}" == --free-threaded ]]; then
    wanted=True
    shift
fi

# ask PYTHON: its tag, and whether it is free-threaded.
ask() {
    "$1" -c '
import sys, sysconfig
if sys.version_info < (3, 11): sys.exit(1)
print(sys.implementation.cache_tag + sys.abiflags, bool(sysconfig.get_config_var("Py_GIL_DISABLED")))' 2>/dev/null
}

for python in "$@"; do
    if ! answer="$(ask "$python")"; then
        echo "interpreters: there is no $python of version 3.11 or newer, nothing tested on it"
        continue
    fi
    read -r tag free <<<"$answer"
    if [[ "$wanted" == True && "$free" == False ]]; then
        echo "interpreters: $python always has the GIL, nothing tested on it"
        continue
    fi
    venv="build/interpreters/$tag"
    [[ -x "$venv/bin/python" ]] || "$python" -m venv "$venv"
    # Their newest versions: the pinned ones need not exist for this interpreter.
    "$venv/bin/python" -m pip install --quiet --prefer-binary hypothesis numpy pytest xxhash
    # Of these only what is built for it: some tests go without.
    for optional in pandas pyarrow; do
        "$venv/bin/python" -m pip install --quiet --only-binary :all: "$optional" 2>/dev/null ||
            echo "interpreters: there is no $optional for $python, its keys are not tested on it"
    done
    path=src
    if [[ "$free" == True ]]; then
        path=""
        CARGO_TARGET_DIR="target/$tag" .venv/bin/maturin build --release --locked --quiet \
            --interpreter "$venv/bin/python" --out "build/wheels/$tag"
        "$venv/bin/python" -m pip install --quiet --force-reinstall --no-deps "build/wheels/$tag"/*.whl
    fi
    echo "interpreters: $("$venv/bin/python" -VV)"
    # A module that needs the GIL would switch it on with a warning.
    PYTHONPATH="$path" "$venv/bin/python" -W error::RuntimeWarning -m pytest -q -p no:cacheprovider \
        tests/compat tests/concurrency
done
