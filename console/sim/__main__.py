"""`python -P -m console.sim MODEL --flags` stands where `vllm serve MODEL --flags` would."""

import sys

from console.sim import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
