#!/usr/bin/env bash
# Runs the core's tests under a sanitizer: `address` all of them and the inputs kept for fuzzing, `thread` those
# that start threads. The standard library is the ordinary one, without instrumentation.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

kind="$1"
host="$(rustc -vV | sed -n 's/^host: //p')"
# Sanitizers are behind a flag that the stable compiler has under this name, too.
export RUSTC_BOOTSTRAP=1
test=(cargo test --locked --package bloomery-core --lib --test threads --target "$host" --target-dir "target/$kind")

case "$kind" in
address)
    export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0
    RUSTFLAGS="-Zsanitizer=address" "${test[@]}"
    RUNS=0 scripts/fuzz.sh container text
    ;;
thread)
    export TSAN_OPTIONS=halt_on_error=1
    RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" "${test[@]}" -- thread
    ;;
*)
    echo "usage: scripts/sanitize.sh address|thread" >&2
    exit 2
    ;;
esac
