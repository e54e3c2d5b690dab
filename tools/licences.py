"""Checks the licences of everything the product and its tests are built from.

Go modules are those whose packages are compiled into the programs, the kits or the
tests of a module; their licence is read from the module's own licence file. npm
packages are those of the committed lock files. Python packages are those installed
in the virtual environment. The module `tools` is left out: its programs are run,
never linked or shipped.

usage: licences.py PYTHON MODULE...      PYTHON is the virtual environment's python
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ALLOWED = {"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MPL-2.0"}

# No stricter than the above: MIT without its notice, Python's own, and a BSD licence
# whose package does not say which.
ALLOWED_BESIDES = {"MIT-0", "PSF-2.0", "BSD"}

# A sentence of each licence, with its white space folded.
SENTENCES = [
    ("Apache-2.0", "apache license version 2.0, january 2004"),
    ("MPL-2.0", "mozilla public license version 2.0"),
    ("MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"),
    ("ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"),
    ("ISC", "permission to use, copy, modify, and distribute this software for any purpose with or without fee"),
    ("BSD-3-Clause", "neither the name of"),
    ("BSD-2-Clause", "redistributions in binary form must reproduce"),
]

# Python packages say it in words of their own.
PYTHON_NAMES = {
    "MIT License": "MIT",
    "Apache Software License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "BSD License": "BSD",
    "BSD": "BSD",
    "3-Clause BSD License": "BSD-3-Clause",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


def licence_of_text(text: str) -> str:
    """Names the licence a text is, or returns nothing."""
    folded = re.sub(r"\s+", " ", text).lower()
    return next((name for name, sentence in SENTENCES if sentence in folded), "")


def licence_of_folder(folder: Path) -> str:
    """Names the licence of a Go module by its licence file."""
    for path in sorted(folder.iterdir()):
        if path.is_file() and re.match(r"(?i)(un)?licen[cs]e|copying", path.name):
            if found := licence_of_text(path.read_text(encoding="utf-8", errors="replace")):
                return found
    return ""


def go_modules(modules: list[str]) -> dict[str, str]:
    """The licence of every module that is compiled, by path and version."""
    template = "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}"
    licences = {}
    for module in modules:
        listing = subprocess.run(
            ["go", "list", "-C", module, "-deps", "-test", "-f", template, "./..."],
            stdout=subprocess.PIPE, text=True, check=True,
        ).stdout
        for line in sorted(set(filter(None, listing.splitlines()))):
            path, version, folder = line.split("\t")
            if not path.startswith("github.com/countersign-mcp/"):
                licences[f"{path} {version}"] = licence_of_folder(Path(folder))
    return licences


def npm_packages() -> dict[str, str]:
    """The licence of every package of the committed lock files."""
    names = subprocess.run(
        ["git", "ls-files", "*package-lock.json"], capture_output=True, text=True, check=True
    ).stdout.split()
    licences = {}
    for name in names:
        for path, package in json.loads(Path(name).read_text(encoding="utf-8"))["packages"].items():
            if path:
                licences[f"{path.removeprefix('node_modules/')} {package['version']}"] = package.get("license", "")
    return licences


def python_packages(python: str) -> dict[str, str]:
    """The licence of every package installed for an interpreter."""
    program = (
        "import importlib.metadata as m, json\n"
        "print(json.dumps([[d.name, d.version, d.metadata.get('License-Expression') or '', d.metadata.get('License') or '',"
        " d.metadata.get_all('Classifier') or []] for d in m.distributions()]))"
    )
    listing = json.loads(subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout)
    licences = {}
    for name, version, expression, words, classifiers in listing:
        if name in ("pip", "setuptools"):
            continue
        classes = [c.rsplit(" :: ", 1)[1] for c in classifiers if c.startswith("License :: OSI Approved :: ")]
        first_line = words.strip().splitlines()[0] if words.strip() else ""
        found = expression or next((PYTHON_NAMES[c] for c in [*classes, first_line] if c in PYTHON_NAMES), first_line)
        licences[f"{name} {version}"] = found or licence_of_text(words)
    return licences


def allowed(expression: str) -> bool:
    """Whether a licence expression is one that may be used: any of ORs, all of ANDs."""
    choices = re.split(r"\s+OR\s+", expression.replace("(", "").replace(")", ""))
    return any(
        all(part in ALLOWED | ALLOWED_BESIDES for part in re.split(r"\s+AND\s+", choice)) for choice in choices
    )


def main() -> int:
    """Prints every finding and a count by licence."""
    python, *modules = sys.argv[1:]
    everything = {
        "go": go_modules(modules),
        "npm": npm_packages(),
        "python": python_packages(python),
    }
    findings = 0
    for kind, licences in everything.items():
        counts: dict[str, int] = {}
        for package, licence in sorted(licences.items()):
            counts[licence or "unknown"] = counts.get(licence or "unknown", 0) + 1
            if not allowed(licence):
                print(f"{kind}: {package}: licence {licence or 'unknown'!r} is not one this project may use", file=sys.stderr)
                findings += 1
        print(f"{kind}: " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
