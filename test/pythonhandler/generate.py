"""Generates the Python stubs of the contracts into a folder, build/pythonhandler by default.

Usage: python generate.py [FOLDER]
"""

import pathlib
import sys

from grpc_tools import protoc

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    output = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "pythonhandler")
    output.mkdir(parents=True, exist_ok=True)
    contracts = sorted(str(path) for path in (ROOT / "proto" / "countersign" / "handler").rglob("*.proto"))
    wellknown = pathlib.Path(protoc.__file__).parent / "_proto"
    return protoc.main(
        ["protoc", f"-I{ROOT / 'proto'}", f"-I{wellknown}", f"--python_out={output}", f"--grpc_python_out={output}"]
        + contracts
    )


if __name__ == "__main__":
    sys.exit(main())
