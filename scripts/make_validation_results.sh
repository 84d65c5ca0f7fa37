#!/bin/sh
# Makes the tables of reports/results/validate/ anew: make_validation_results.sh DATA, where DATA holds
# training_runs.csv, mimo_paper_runs.csv, memory_points.csv, validation_h100_bf16.csv and
# validation_sets.csv. Needs a built build/isthmus.
set -eu
data=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
results=reports/results/validate

build/isthmus validate tests/data/paper_runs.csv --out "$folder/paper" > /dev/null
build/isthmus validate "$data/validation_h100_bf16.csv" --out "$folder/h100_bf16" > /dev/null
# Ends with 1: many rows of the sets need what is not built yet.
build/isthmus validate "$data/training_runs.csv" "$data/mimo_paper_runs.csv" \
  "$data/memory_points.csv" --sets "$data/validation_sets.csv" --out "$folder/all" > /dev/null || [ $? -eq 1 ]
for study in paper h100_bf16 all; do
  rm -rf "${results:?}/$study"
  mkdir -p "$results/$study"
  cp "$folder/$study"/*.md "$folder/$study"/*.csv "$results/$study/"
done
# The rows of the whole collection are too many to read or to keep.
rm "$results"/all/rows.md "$results"/all/assumptions.md "$results"/all/gain*
