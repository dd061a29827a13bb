#!/usr/bin/env bash
# Builds the wheels that one Linux machine can build, and audits them: wheels.sh [TARGET...] into dist/. There are two a
# target: the library, and the service's data plane, which the extra `server` asks for and which is for Linux alone.
# TARGET is one of the names below; none means all. Rust's standard libraries come by rustup. The code for
# macOS and Windows is checked (types, not linked): their wheels are built on such machines.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset VIRTUAL_ENV
# The symbol table, from which stubs are written, is 0.25 MB of a wheel that nobody needs there.
export CARGO_PROFILE_RELEASE_STRIP=symbols

declare -A platforms=(
    [x86_64-unknown-linux-gnu]=manylinux2014
    [aarch64-unknown-linux-gnu]=manylinux2014
    [x86_64-unknown-linux-musl]=musllinux_1_2
    [aarch64-unknown-linux-musl]=musllinux_1_2
)
foreign=(aarch64-apple-darwin x86_64-apple-darwin x86_64-pc-windows-msvc)
targets=("$@")
[[ $# -gt 0 ]] || targets=("${!platforms[@]}" "${foreign[@]}")

if ! command -v rustup >/dev/null; then
    echo "wheels: rustup is missing; it brings the standard libraries of other machines" >&2
    exit 1
fi
venv=build/wheels
[[ -x $venv/bin/python ]] || "${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet -r requirements/wheels.txt
PATH="$PWD/$venv/bin:$PATH"

scripts/web_pages.sh
for target in "${targets[@]}"; do
    rustup --quiet target add "$target" 2>/dev/null || { echo "wheels: $target is not to be had, passed over"; continue; }
    if [[ " ${foreign[*]} " == *" $target "* ]]; then
        PYO3_CROSS=1 PYO3_CROSS_PYTHON_VERSION=3.11 cargo check --locked --quiet --workspace --target "$target"
        echo "wheels: the sources compile for $target"
        continue
    fi
    platform="${platforms[$target]:?no such target}"
    flags="${RUSTFLAGS:-}"
    # A shared library needs musl's, not its own copy of it.
    [[ $target == *-musl ]] && flags+=" -C target-feature=-crt-static"
    for crate in fullbloom-py fullbloom-server; do
        # The first crate's settings are those of the root.
        [[ $crate == fullbloom-py ]] && manifest=() || manifest=(--manifest-path "crates/$crate/Cargo.toml")
        RUSTFLAGS="$flags" maturin build --release --locked --quiet --zig --compression-level 9 "${manifest[@]}" \
            --target "$target" --compatibility "$platform" --out dist
        echo "wheels: $(ls -1t dist/*.whl | head -n 1)"
    done
done
"$venv/bin/python" scripts/audit_wheels.py dist/*.whl
