#!/usr/bin/env bash
# check_web.sh: types, lints and unit tests of web/, where it has been built; a note where it has not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../web"
if grep -n '"resolved": "http' package-lock.json; then
    echo "web/package-lock.json: addresses of a registry; run npm install in that folder, whose .npmrc leaves them out"
    exit 1
fi
if ! command -v node >/dev/null; then
    echo "note: Node is missing; the TypeScript of web/ is not checked"
elif [[ ! -x node_modules/.bin/tsc || ! -f fullbloom/wasm/fullbloom_wasm.d.ts ]]; then
    echo "note: web/ is not built (make web); its TypeScript is not checked"
else
    npm run --silent types
    npm run --silent lint
    npm run --silent test
fi
