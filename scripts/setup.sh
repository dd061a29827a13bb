#!/usr/bin/env bash
# setup.sh build: creates .venv with what compiles the native modules, and nothing else.
# setup.sh test: adds what `make test` needs, in 22 seconds of processor time. Spark and a package that has to be compiled
# take 35 and serve a few tests, so that they come with the tools.
# setup.sh tools: adds everything that all tests and checks need.
# Installs missing system packages when run by root on a Debian system; otherwise says what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python="${PYTHON:-python3}"
rust_wanted="$(sed -nE 's/^rust-version = "(.*)"/\1/p' Cargo.toml)"

# need PACKAGE WHAT: installs PACKAGE, or explains how to.
need() {
    if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
        echo "setup: $2 is missing, installing the Debian package $1"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1" >/dev/null
    else
        echo "setup: $2 is missing; install it (on Debian: apt-get install $1) and run make again" >&2
        exit 1
    fi
}

# want PACKAGE WHAT: installs PACKAGE where that can be done, and goes on without it where not.
want() {
    if ! (need "$1" "$2") 2>/dev/null; then
        echo "setup: $2 is missing, and the tests that need it are skipped (on Debian: apt-get install $1)"
    fi
}

# add NAME: installs requirements/NAME.txt. Without bytecode of all modules: tests import a part of them, and Python keeps
# what it compiles.
add() { .venv/bin/python -m pip install --quiet --no-compile -r "requirements/$1.txt"; }

# at_least HAVE WANTED: compares dotted versions.
at_least() { [[ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" == "$2" ]]; }

command -v "$python" >/dev/null || need python3 "Python 3.11 or newer"
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "setup: $python is $("$python" --version), 3.11 or newer is needed; run make PYTHON=/path/to/python3" >&2
    exit 1
fi
command -v cc >/dev/null || need gcc "a C compiler"
command -v cargo >/dev/null || need cargo "a Rust toolchain"
rust_found="$(rustc --version | cut -d ' ' -f 2)"
if ! at_least "$rust_found" "$rust_wanted"; then
    echo "setup: rustc is $rust_found, $rust_wanted or newer is needed; install it with rustup (rustup update)" >&2
    exit 1
fi

if [[ ! -x .venv/bin/python ]]; then
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        need "python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv" "Python's venv module"
    fi
    "$python" -m venv .venv
fi
add build
[[ "${1:-tools}" == build ]] && exit

for shell in bash zsh fish; do
    command -v "$shell" >/dev/null || want "$shell" "$shell, in which completion is tested,"
done
command -v redis-cli >/dev/null || want redis-tools "redis-cli, with which the service is tested,"
command -v redis-server >/dev/null || want redis-server "redis-server, on which filters in Redis are tested,"
command -v chromium >/dev/null || want chromium "Chromium, in which the pages are tested,"
add pip
add test
add formats ||
    echo "setup: other packages of filters cannot be installed, and the tests that read their files are skipped"
add redisbloom ||
    echo "setup: RedisBloom's module has no wheel for this machine, and the tests that load dumps into it are skipped"
add browser ||
    echo "setup: Playwright cannot be installed, and the tests of pages in a browser are skipped"
[[ "${1:-tools}" == test ]] && exit

[[ -x $(compgen -G '/usr/lib/postgresql/*/bin/initdb' | head -n 1) ]] || command -v initdb >/dev/null ||
    want postgresql "PostgreSQL, with which the service's registry is tested,"

command -v javac >/dev/null || want default-jdk-headless "javac, with which filters of Spark and Guava are tested,"
add pybloomfiltermmap3 ||
    echo "setup: pybloomfiltermmap3 cannot be built, and the test that reads its files is skipped"
add spark ||
    echo "setup: Spark cannot be installed, and the tests that compare filters with its and Guava's are skipped"
add dev
