"""``python -m bloomery`` is the command line."""

import sys

try:
    from bloomery.cli import main
except KeyboardInterrupt:  # Ctrl-C before the command line is there to answer it
    sys.stderr.write("bloomery: interrupted\n")
    sys.exit(130)

sys.exit(main())
