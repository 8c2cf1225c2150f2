"""`python -m console` is the command `qwen-console`."""

import sys

from console.cli import main

if __name__ == "__main__":
    sys.exit(main())
