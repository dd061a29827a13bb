#!/usr/bin/env bash
# web.sh: builds the core for browsers into web/fullbloom/wasm, the package's JavaScript into web/fullbloom/dist, and
# the pages made of it: web/explorer/dist and web/dashboard/dist.
# web.sh --obtain: installs and downloads all that this needs, and builds nothing; exit code 1 if anything cannot be had.
# web.sh --dashboard: builds the dashboard only, which needs Node but neither the core nor its compiler; installs no program.
#
# Needs Node with npm, and Rust's standard library for wasm32-unknown-unknown. Node comes from Debian, as root, where its
# suite has a version that is new enough. The library comes from rustup where rustup is there; as root on Debian from a
# newer suite, unpacked under build/wasm/debian and started through that suite's own loader, so that nothing of the system
# changes.
# KINDS names the kinds of filters that the module opens and creates (all of them where it is empty).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=wasm32-unknown-unknown
root="$PWD/build/wasm"
debian="$root/debian"
suite="${SUITE:-sid}"
package=web/fullbloom

stop() {
    echo "web: $1" >&2
    exit 1
}

# is_debian_root: true where packages can be installed.
is_debian_root() { [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; }

# is_new_enough VERSION: true of a version of Node that Vite runs on.
is_new_enough() { [[ -n "$1" && "$(printf '%s\n20.19\n' "$1" | sort -V | head -n 1)" == 20.19 ]]; }

# has_node: true where Node and npm are there.
has_node() { command -v npm >/dev/null && is_new_enough "$(node --version 2>/dev/null | tr -d v)"; }

# offers_node: true where Debian has a Node that is new enough.
offers_node() { is_debian_root && is_new_enough "$(apt-cache policy nodejs | sed -nE 's/^ *Candidate: ([0-9.]+).*/\1/p')"; }

# has_target: true where the compiler in use has the standard library of the target.
has_target() { [[ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]]; }

# from_debian: a newer compiler with the target, its linker and loader, in a private prefix.
from_debian() {
    local source found apt names
    apt="$debian/apt"
    mkdir -p "$apt"/{lists/partial,cache/archives/partial,sources} "$debian/root"
    # The machine's own sources, with the name of the suite changed.
    found="$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/debian*.sources 2>/dev/null || true; } |
        sed -nE 's/^(URIs: |deb )(https?:[^ ]*\/debian)\/?( .*)?$/\2/p' | head -n 1)"
    [[ -n "$found" ]] || stop "no source of Debian packages was found; install rustup, then run: rustup target add $target"
    source="$apt/sources/newer.list"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $found $suite main" >"$source"
    local -a options=(-o "Dir::Etc::SourceList=$source" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$apt/lists"
        -o "Dir::Cache=$apt/cache" -o Dir::State::status=/dev/null -o APT::Sandbox::User=root)
    apt-get "${options[@]}" update -qq
    names=(rustc libstd-rust-dev libstd-rust-dev-wasm32 lld libc6 libgcc-s1 libstdc++6 zlib1g libzstd1 libxml2-16
        libedit2 libffi8 libtinfo6 libz3-4 libbsd0 libmd0)
    # shellcheck disable=SC2207 # names of packages have no spaces
    names+=($(apt-cache "${options[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
        --no-replaces --no-enhances rustc lld libstd-rust-dev 2>/dev/null | grep -E '^(libstd-rust-[0-9]|libllvm|llvm-[0-9]+-linker|lld-[0-9]|libclang)' | sort -u))
    (cd "$apt/cache/archives" && apt-get "${options[@]}" download -qq "${names[@]}")
    for archive in "$apt/cache/archives"/*.deb; do dpkg -x "$archive" "$debian/root"; done
    rm -rf "$apt/cache" "$apt/lists"
}

# through_loader NAME PROGRAM ARGUMENT...: writes a script that starts a program of the prefix by its own loader.
through_loader() {
    local script="$debian/$1" libraries
    shift
    libraries="$(find "$debian/root/usr/lib" -maxdepth 3 -name lib -path '*/llvm-*/*' | paste -sd:)"
    cat >"$script" <<SCRIPT
#!/bin/sh
exec $(find "$debian/root" -name 'ld-linux-*.so.*' | head -n 1) --library-path \
$debian/root/usr/lib/$(uname -m)-linux-gnu:$debian/root/lib/$(uname -m)-linux-gnu:$libraries $* "\$@"
SCRIPT
    chmod +x "$script"
}

# check: says what is missing.
check() {
    has_node || offers_node || stop "Node is missing; install Node 20.19 or newer, with npm"
    has_target || command -v rustup >/dev/null || is_debian_root ||
        stop "the Rust compiler has no target $target; install rustup, then run: rustup target add $target"
}

if [[ "${1:-}" == --dashboard ]]; then
    has_node || stop "Node 20.19 or newer is missing"
    [[ web/node_modules/.package-lock.json -nt web/package-lock.json ]] || npm --prefix web ci --silent --ignore-scripts
    npm --prefix web run --silent --workspace dashboard build
    exit
fi
check
if ! has_node; then
    echo "web: Node is missing, installing the Debian packages nodejs and npm"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq nodejs npm >/dev/null
fi
if ! has_target; then
    if command -v rustup >/dev/null; then
        rustup target add "$target"
    else
        if [[ ! -x "$debian/rustc" ]]; then
            echo "web: the compiler has no $target; fetching one that has from Debian $suite"
            from_debian
            through_loader rustc "$debian/root/usr/bin/rustc --sysroot $debian/root/usr"
            linker="$(find "$debian/root/usr/lib" -path '*/llvm-*/bin/lld' | head -n 1)"
            # lld is the linker of WebAssembly when it is called by this name.
            through_loader wasm-ld "--argv0 wasm-ld $linker"
        fi
        export RUSTC="$debian/rustc" CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$debian/wasm-ld"
    fi
fi

# The tool's version must be that of the crate.
version="$(sed -nE '/^name = "wasm-bindgen"$/{n;s/^version = "(.*)"/\1/p}' Cargo.lock)"
bindgen="$root/bin/wasm-bindgen"
if command -v wasm-bindgen >/dev/null && [[ "$(wasm-bindgen --version)" == "wasm-bindgen $version" ]]; then
    bindgen=wasm-bindgen
elif [[ "$("$bindgen" --version 2>/dev/null)" != "wasm-bindgen $version" ]]; then
    echo "web: compiling wasm-bindgen $version, a minute or two"
    # For this machine, by its own compiler. Unoptimised it takes 0.4 s for a module and not 0.1, and minutes less to compile.
    env -u RUSTC CARGO_TARGET_DIR="$root/target" CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --force --debug \
        --root "$root" wasm-bindgen-cli --version "$version"
    rm -rf "$root/target"
fi

npm --prefix web ci --silent --ignore-scripts
[[ "${1:-}" != --obtain ]] || exit 0

# Vectors of 128 bits are in all browsers since 2023 and in Node 20: half the time of a lookup in a filter of 1 MB.
# The compiler's own vectors and long unrolled loops cost 5 kB of 341 and save no time: what is fast has vectors in its code.
export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="-C target-feature=+simd128 -C no-vectorize-loops -Cllvm-args=--unroll-threshold=100"
# build_module PROFILE KINDS FOLDER: compiles the module with these kinds and writes it into a folder.
build_module() {
    FULLBLOOM_KINDS="$2" cargo build --quiet --locked --profile "$1" --package fullbloom-wasm --lib --target "$target"
    "$bindgen" --target web --remove-name-section --remove-producers-section --out-dir "$3" \
        "${CARGO_TARGET_DIR:-target}/$target/$1/fullbloom_wasm.wasm"
}
build_module wasm "${KINDS:-}" "$package/wasm"
# The first scenes of the explorer need these; it loads the whole module for the others.
build_module explorer "bloom counting rolling aging golomb" "$root/explorer"
# One JavaScript serves both modules, so they must import the same functions.
cmp -s {"$package/wasm","$root/explorer"}/fullbloom_wasm.js ||
    stop "the modules of the package and of the explorer need different JavaScript"
# Its comments are in the types, too; here they cost a kilobyte of 350.
sed -i -e '/^ *\/\*\*.*\*\/ *$/d' -e '/^ *\/\*\*/,/\*\/ *$/d' "$package/wasm/fullbloom_wasm.js"
mkdir -p web/explorer/core
cp "$root/explorer/fullbloom_wasm_bg.wasm" web/explorer/core/

npm --prefix web run --silent --workspaces --if-present build
# As the service sends the files of the explorer; the dashboard's own build does so itself.
[[ ! -d web/explorer/dist ]] || node scripts/web_compress.mjs web/explorer/dist
cp LICENSE THIRD-PARTY-LICENSES "$package/"
node scripts/web_size.mjs "$package"
node scripts/web_size.mjs web/explorer/core 150
