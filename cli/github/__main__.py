"""`python -m cli.github launch`, `judge` or `stop`."""

import sys

from cli.github.steps import run

sys.exit(run(sys.argv[1]))
