#!/usr/bin/env bash
# Every static check; runs all of them, then fails if one failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=()
# run NAME COMMAND...: prints the command's output only when it fails, and its notes.
run() {
    local name="$1" output
    shift
    if output="$("$@" 2>&1)"; then
        printf 'ok      %s\n' "$name"
        grep '^note: ' <<<"$output" || true
    else
        printf 'FAILED  %s\n%s\n' "$name" "$output"
        failed+=("$name")
    fi
}

run "rustfmt" cargo fmt --all --check -- --color never
run "rustfmt of fuzz" cargo fmt --manifest-path fuzz/Cargo.toml --check -- --color never
run "lock file of fuzz" bash -c 'cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null'
run "clippy" cargo clippy --locked --workspace --all-targets --features fullbloom-server/python --quiet -- -D warnings
run "crate arrows" python scripts/check_crates.py
run "repository content" python scripts/check_content.py
run "words" python scripts/check_words.py
run "ruff check" ruff check
run "ruff format" ruff format --check
run "stub is current" python -m scripts.stubs --check
run "blocking modules are current" python scripts/generate_sync.py --check
run "stubtest" python -m mypy.stubtest fullbloom._core --allowlist .mypy-stubtest-allowlist
run "mypy --strict" mypy
run "import contracts" lint-imports --no-logo
run "circles of imports" python scripts/check_circles.py
run "imports of third parties" python scripts/check_imports.py
run "licences are current" python scripts/licences.py --check
run "release would work" python scripts/release.py --check
run "pages are current" python -m scripts.pages --check
run "types, lints and unit tests of web" scripts/check_web.sh
run "docs examples" python -m pytest -q tests/docs tests/typing

if ((${#failed[@]})); then
    printf '%d of the checks failed: %s\n' "${#failed[@]}" "$(IFS=,; echo "${failed[*]}")"
    exit 1
fi
echo "all checks passed"
