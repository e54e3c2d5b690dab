"""Checks that the tracked files speak of the product alone.

A path of the machine somebody works on, or the address of the package registry
that machine uses, means nothing to the next reader and breaks on the next machine.
Nor is a program that was built there source: everything here is text.
What must not appear is taken from the machine this runs on, from its settings and
folders, and from a few shapes that are wrong anywhere.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlparse

# Shapes that are wrong on any machine: somebody's home, a mounted work folder, an
# address in a lock file.
SHAPES = [
    re.compile(r"(?<![\w.~$}{-])/(?:root|home|work|Users)/[\w.-]+"),
    re.compile(r'"resolved":\s*"'),
    re.compile(r"--(?:extra-)?index-url\b"),
    re.compile(r"[.][.]/shared/"),
]


def output_of(*command: str) -> str:
    """What a command prints, or nothing where it is not installed or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def registry_hosts() -> set[str]:
    """The hosts that this machine's package clients are set to."""
    settings = [
        output_of("npm", "config", "get", "registry"),
        output_of("go", "env", "GOPROXY"),
        output_of("go", "env", "GOSUMDB"),
        output_of(sys.executable, "-m", "pip", "config", "get", "global.index-url"),
        os.environ.get("PIP_INDEX_URL", ""),
    ]
    hosts = {"files.pythonhosted" + ".org", "pypi" + ".org"}
    for word in re.split(r"[,|\s]+", " ".join(settings)):
        host = urlparse(word).hostname if "//" in word else word
        if host and "." in host and host not in ("127.0.0.1", "localhost"):
            hosts.add(host)
    return hosts


def main() -> int:
    """Prints every finding and returns how the process is to end."""
    checkout = Path(output_of("git", "rev-parse", "--show-toplevel"))
    words = registry_hosts() | {str(checkout) + "/"}
    names = output_of("git", "-C", str(checkout), "ls-files", "-z").split("\0")
    findings = 0
    for name in filter(None, names):
        path = checkout / name
        if not path.is_file():
            continue  # deleted and not yet committed
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            print(f"{name}: is not text; what is built does not belong here", file=sys.stderr)
            findings += 1
            continue
        for number, line in enumerate(lines, start=1):
            found = [word for word in words if word in line]
            found += [match.group(0) for shape in SHAPES if (match := shape.search(line))]
            for what in found:
                print(f"{name}:{number}: {what!r} belongs to one machine, not to the product", file=sys.stderr)
                findings += 1
    print(f"{len(names)} files looked at, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
