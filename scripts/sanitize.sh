#!/usr/bin/env bash
# Runs the core's tests under a sanitizer: `address` with the inputs kept for fuzzing, too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

kind="$1"
host="$(rustc -vV | sed -n 's/^host: //p')"
# Sanitizers are behind a flag that the stable compiler has under this name, too.
export RUSTC_BOOTSTRAP=1
test=(cargo test --locked --package fullbloom-core --lib --test threads --target "$host" --target-dir "target/$kind")

case "$kind" in
address)
    export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0
    RUSTFLAGS="-Zsanitizer=address" "${test[@]}" -- --include-ignored
    RUNS=0 scripts/fuzz.sh container text
    ;;
thread)
    # Locks and joins of the standard library as it is shipped are invisible to ThreadSanitizer, which then takes
    # every thread for a race: it is rebuilt from its source.
    if [[ ! -e "$(rustc --print sysroot)/lib/rustlib/src/rust/library/Cargo.lock" ]]; then
        echo "tsan: the source of the standard library is missing; install it with: rustup component add rust-src," \
            "or see fuzz/README.md" >&2
        exit 1
    fi
    export TSAN_OPTIONS=halt_on_error=1
    RUSTFLAGS="-Zsanitizer=thread" "${test[@]}" -Zbuild-std -- --include-ignored
    ;;
*)
    echo "usage: scripts/sanitize.sh address|thread" >&2
    exit 2
    ;;
esac
