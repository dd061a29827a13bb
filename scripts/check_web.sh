#!/usr/bin/env bash
# check_web.sh: types of the package for browsers, where it has been built; a note where it has not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../web/fullbloom"
if ! command -v node >/dev/null; then
    echo "note: Node is missing; the types of web/fullbloom are not checked"
elif [[ ! -x node_modules/.bin/tsc || ! -f wasm/fullbloom_wasm.d.ts ]]; then
    echo "note: web/fullbloom is not built (make web); its types are not checked"
else
    node_modules/.bin/tsc --noEmit -p .
fi
if grep -n '"resolved"' package-lock.json; then
    echo "web/fullbloom/package-lock.json: addresses of a registry; run npm install in that folder, whose .npmrc leaves them out"
    exit 1
fi
