#!/usr/bin/env bash
# Servers that the tests of engines start: redis-server, and valkey-server where the distribution has it.
set -euo pipefail

missing=()
for server in redis-server valkey-server; do
    command -v "$server" >/dev/null || missing+=("$server")
done
if ((${#missing[@]})) && [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    apt-get update -qq || true
    for package in "${missing[@]}"; do
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 ||
            echo "note: $package is not to be had here"
    done
fi
command -v redis-server >/dev/null || command -v valkey-server >/dev/null || {
    echo "needs redis-server or valkey-server on PATH" >&2
    exit 1
}
