#!/usr/bin/env bash
# Runs one step: prints its name, runs it, prints how long it took, and adds a line
# "seconds <tab> name <tab> ok|FAILED" to the file that TIMINGS names, if any.
#
# usage: timed.sh NAME COMMAND [ARGUMENT...]
set -uo pipefail

name=$1
shift
echo "=== $name"
started=$SECONDS
"$@"
status=$?
seconds=$((SECONDS - started))
if [ "$status" -eq 0 ]; then outcome=ok; else outcome=FAILED; fi
echo "--- $name: $outcome in $seconds s"
if [ -n "${TIMINGS:-}" ]; then
  printf '%s\t%s\t%s\n' "$seconds" "$name" "$outcome" >>"$TIMINGS"
fi
exit "$status"
