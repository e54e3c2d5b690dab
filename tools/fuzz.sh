#!/usr/bin/env bash
# Runs every fuzz target of one Go module. A count of inputs ends on the spot where a
# time can end in the middle of an input, which Go reports as a failure.
#
# usage: fuzz.sh MODULE AMOUNT     for example: fuzz.sh . 20000x   or: fuzz.sh . 5m
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
