"""Finds the program `hotseat` that this package installed."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path


def find_binary() -> Path:
    """Returns the path of the program `hotseat`.

    The environment variable `HOTSEAT_BINARY` takes precedence over the installed program.

    Raises FileNotFoundError if there is none.
    """
    override = os.environ.get("HOTSEAT_BINARY")
    if override:
        if not Path(override).is_file():
            raise FileNotFoundError(f"HOTSEAT_BINARY={override}: no such file")
        return Path(override)
    name = "hotseat.exe" if os.name == "nt" else "hotseat"
    user_scheme = "nt_user" if os.name == "nt" else "posix_user"
    folders = [
        sysconfig.get_path("scripts"),
        # `pip install --user`
        sysconfig.get_path("scripts", scheme=user_scheme),
        # `pip install --prefix` and virtual environments that another interpreter runs
        str(Path(sys.prefix) / ("Scripts" if os.name == "nt" else "bin")),
        # `pip install --target`
        str(Path(__file__).resolve().parent.parent / "bin"),
    ]
    for folder in folders:
        path = Path(folder) / name
        if path.is_file():
            return path
    searched = ", ".join(dict.fromkeys(folders))
    raise FileNotFoundError(f"the program {name} is not installed; searched in {searched}")
