#!/usr/bin/env bash
# Checks that the contracts still serve those who built against the last release,
# or, before there is one, against the commit before this one. The earlier
# contracts are taken out of git; a clone without history, or a first commit, has
# none and there is nothing to compare with.
set -euo pipefail

earlier=$(git describe --tags --match 'v*' --abbrev=0 2>/dev/null || git rev-parse --verify --quiet 'HEAD^' || true)
if [ -z "$earlier" ] || ! git cat-file -e "$earlier:buf.yaml" 2>/dev/null; then
  echo "no earlier contracts in this clone: nothing to compare with"
  exit 0
fi
rm -rf build/earlier-contracts
mkdir -p build/earlier-contracts
git archive "$earlier" buf.yaml proto/countersign | tar -x -C build/earlier-contracts
echo "comparing with $(git log -1 --format='%h %s' "$earlier")"
buf breaking --against build/earlier-contracts
