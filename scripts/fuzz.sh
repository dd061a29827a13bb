#!/usr/bin/env bash
# Runs each fuzz target, or those that are named, for TIME seconds (60); with RUNS=0 the inputs at hand only. New
# inputs and what broke a target are kept under fuzz/work/; the exit code is 1 when a target broke. SANITIZER=none
# runs the targets in Rust without AddressSanitizer, for long runs. See fuzz/README.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds="${TIME:-60}"
host="$(rustc -vV | sed -n 's/^host: //p')"
build=fuzz/target
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing"

command -v c++ >/dev/null || { echo "fuzz: libFuzzer needs a C++ compiler (on Debian: apt-get install g++)" >&2; exit 1; }

# The targets in Rust, under AddressSanitizer, which a compiler of the stable channel has, too.
sanitizer="${SANITIZER:-address}"
rust="$build/rust/$sanitizer"
build_rust() {
    local flags="$coverage"
    [[ "$sanitizer" == none ]] || flags+=" -Zsanitizer=$sanitizer"
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="$flags" \
        cargo build --quiet --release --locked --manifest-path fuzz/Cargo.toml --target "$host" --target-dir "$rust"
}

# The extension with coverage, and libFuzzer as the library that its hooks find.
build_python() {
    RUSTFLAGS="$coverage" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=8 \
        CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true \
        PYO3_PYTHON="$PWD/.venv/bin/python" \
        cargo build --quiet --release --locked --package fullbloom-py --target "$host" --target-dir "$build/python"
    local archive objects="$build/libfuzzer" package="$build/package/fullbloom"
    # Apart from the targets in Rust: an interpreter has no AddressSanitizer.
    cargo build --quiet --release --locked --manifest-path fuzz/Cargo.toml --package libfuzzer-sys --target "$host" \
        --target-dir "$build/driver"
    archive="$(find "$PWD/$build/driver" -name libfuzzer.a -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2-)"
    rm -rf "$objects" "$build/package"
    mkdir -p "$objects" "$package"
    # Without the parts that only a program can have: main, and what runs before it.
    (cd "$objects" && ar x "$archive" && rm -f -- *FuzzerMain.o *FuzzerInterceptors.o)
    c++ -shared -o "$build/libdriver.so" "$objects"/*.o -lpthread
    cp -r src/fullbloom/. "$package"
    rm -f "$package"/_core*.so
    cp "$build/python/$host/release/lib_core.so" "$package/_core.abi3.so"
}

# run TARGET: for the time given, on the inputs that are kept; false when it broke.
run() {
    local target="$1" length=512 command
    local work="fuzz/work/$target"
    mkdir -p "$work"
    .venv/bin/python fuzz/corpus.py unpack "$target" "$work"
    local corpora=("$work")
    if [[ -e "fuzz/targets/$target.rs" ]]; then
        command=("$rust/$host/release/$target")
    else
        command=(.venv/bin/python "fuzz/python/$target.py")
    fi
    # Files of every structure are inputs as they are.
    case "$target" in
    container) corpora+=(tests/golden) && length=3072 ;;
    bank) corpora+=(tests/golden/banks) && length=6144 ;;
    signatures) corpora+=(tests/golden/signatures) && length=6144 ;;
    # The longest of the golden files has 4096 bytes.
    foreign) corpora+=(tests/golden/foreign) && length=4608 ;;
    esac
    echo "fuzz: $target, $seconds s"
    ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0 \
        FULLBLOOM_FUZZ_DRIVER="$build/libdriver.so" FULLBLOOM_FUZZ_LAST="fuzz/work/$target.last" \
        PYTHONPATH="$build/package" OPENBLAS_NUM_THREADS=1 \
        "${command[@]}" -max_total_time="$seconds" -runs="${RUNS:--1}" -max_len="$length" -timeout=20 -print_final_stats=1 \
        -artifact_prefix="fuzz/work/$target-" "${corpora[@]}" >"fuzz/work/$target.log" 2>&1 || {
        tail -n 40 "fuzz/work/$target.log"
        echo "fuzz: $target broke; the input is fuzz/work/$target-*, or what fuzz/work/$target.last begins with"
        return 1
    }
    grep -E ' DONE |number_of_executed_units|average_exec' "fuzz/work/$target.log"
}

targets=("$@")
if ((${#targets[@]} == 0)); then
    targets=(container bank signatures delta text resp foreign keys arrow buffers readers)
fi
build_rust
for target in "${targets[@]}"; do
    [[ -e "fuzz/python/$target.py" ]] && build_python && break
done
broken=0
for target in "${targets[@]}"; do
    run "$target" || broken=1
done
exit "$broken"
