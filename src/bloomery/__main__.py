"""``python -m bloomery`` is the command line."""

import sys

from bloomery.cli import main

sys.exit(main())
