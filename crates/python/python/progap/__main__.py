"""The command ``progap``: the same library as the program of that name."""

import signal
import sys

from progap import _progap


def main() -> int:
    """Runs the command with the arguments of this process."""
    # The command has its own way with Ctrl-C: the first one stops training and keeps what is done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _progap.main(["progap", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
