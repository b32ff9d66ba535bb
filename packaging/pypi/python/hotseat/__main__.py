"""Runs the program: `python -m hotseat ARGS…`."""

import os
import subprocess
import sys

from ._binary import find_binary


def main() -> None:
    """Replaces this process with the program, or waits for it where that is impossible."""
    command = [str(find_binary()), *sys.argv[1:]]
    if os.name == "posix":
        os.execv(command[0], command)
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
