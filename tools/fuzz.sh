#!/usr/bin/env bash
# Runs every fuzz target of one Go module for a while each.
#
# usage: fuzz.sh MODULE TIME       for example: fuzz.sh . 10s
set -euo pipefail

cd "$1"
listing=$(go test -list '^Fuzz' ./...)
targets=()
while read -r word package _; do
  case "$word" in
    Fuzz*) targets+=("$word") ;;
    ok)
      # The names come first, then the line of the package they belong to.
      for target in ${targets[@]+"${targets[@]}"}; do
        echo "== $package $target"
        go test -run '^$' -fuzz "^$target\$" -fuzztime "$2" "$package"
      done
      targets=()
      ;;
  esac
done <<<"$listing"
