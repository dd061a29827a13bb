"""``python -m fullbloom`` is the command line."""

import sys

try:
    from fullbloom.cli import main
except KeyboardInterrupt:  # Ctrl-C before the command line is there to answer it
    sys.stderr.write("fullbloom: interrupted\n")
    sys.exit(130)

sys.exit(main())
