#!/usr/bin/env bash
# web_pages.sh: copies the built pages of web/ to where the wheel of the service includes them; says which are not built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pages=crates/fullbloom-server/fullbloom_server_pages
rm -rf "$pages"
for page in dashboard explorer; do
    if [[ -f web/$page/dist/index.html ]]; then
        mkdir -p "$pages"
        cp -R "web/$page/dist" "$pages/$page"
    else
        echo "pages: web/$page is not built (make web); the wheel comes without it"
    fi
done
