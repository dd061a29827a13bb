#!/usr/bin/env bash
# Programs that the tests of engines start: redis-server, valkey-server where the distribution has it, Java for Spark,
# and PostgreSQL. Installs what is missing when run by root on a Debian system; otherwise says what is missing.
set -euo pipefail

has() { command -v "$1" >/dev/null; }
has_postgresql() { compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null || has initdb; }
has_java() { has java || [[ -n ${JAVA_HOME:-} ]]; }

missing=()
has redis-server || missing+=(redis-server)
has valkey-server || missing+=(valkey-server)
has_java || missing+=(default-jre-headless)
has_postgresql || missing+=(postgresql)
if ((${#missing[@]})) && [[ $(id -u) == 0 ]] && has apt-get; then
    apt-get update -qq || true
    for package in "${missing[@]}"; do
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 ||
            echo "note: $package is not to be had here"
    done
fi
has redis-server || has valkey-server || {
    echo "needs redis-server or valkey-server on PATH" >&2
    exit 1
}
has_java || {
    echo "needs Java for Spark, on PATH or at JAVA_HOME (on Debian: apt-get install default-jre-headless)" >&2
    exit 1
}
has_postgresql || {
    echo "needs PostgreSQL (on Debian: apt-get install postgresql)" >&2
    exit 1
}
