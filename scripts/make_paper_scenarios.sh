#!/bin/sh
# Makes scenarios/paper/ anew from the rows of the heterogeneous-parallelism paper, by the code that
# also serves `isthmus validate`. Needs a built build/isthmus.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
build/isthmus validate tests/data/paper_runs.csv --out "$folder" > /dev/null
for table in A2 A3 A4; do
  rm -rf "scenarios/paper/$table"
  cp -r "$folder/scenarios/$table" "scenarios/paper/$table"
done
echo "scenarios/paper: $(find scenarios/paper -name '*.yaml' | wc -l) scenarios"
