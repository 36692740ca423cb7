"""Run the command line as ``python -m bayplan``."""

import sys

from bayplan.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
