#!/usr/bin/env bash
# Checks that this machine has what a goal needs, and says what to do when it does
# not: Go, Node.js with npm, Python 3 with venv. Everything else is fetched by the
# build itself, at the versions that are committed.
#
# usage: toolchain.sh [go] [node] [python]
set -euo pipefail

failed=0

# require NAME MINIMUM FOUND ADVICE
require() {
  if [ -z "$3" ]; then
    echo "$1 is missing: install $1 $2 or later ($4)." >&2
    failed=1
  elif [ "$(printf '%s\n%s\n' "$2" "$3" | sort -V | head -n 1)" != "$2" ]; then
    echo "$1 is $3, and $2 or later is needed: install a newer one ($4)." >&2
    failed=1
  else
    echo "$1 $3"
  fi
}

version_of() { "$@" 2>/dev/null | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1 || true; }

for tool in "$@"; do
  case $tool in
    go)
      require Go 1.26 "$(version_of go env GOVERSION)" "go.dev/doc/install"
      ;;
    node)
      require Node.js 20.0 "$(version_of node --version)" "nodejs.org"
      require npm 9.0 "$(version_of npm --version)" "it comes with Node.js"
      ;;
    python)
      require Python 3.10 "$(version_of python3 --version)" "python.org"
      if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        echo "Python has no venv module: install it (on Debian and Ubuntu: apt-get install python3-venv)." >&2
        failed=1
      fi
      # Only the tests need Python, and only they use the race detector.
      if ! command -v cc >/dev/null 2>&1; then
        echo "There is no C compiler, which Go's race detector needs: tests run without it."
      fi
      ;;
    *)
      echo "there is no check for $tool" >&2
      failed=1
      ;;
  esac
done
exit "$failed"
