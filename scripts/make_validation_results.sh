#!/bin/sh
# Makes the tables and pictures of reports/results/validate/ anew: make_validation_results.sh DATA,
# where DATA holds training_runs.csv, mimo_paper_runs.csv, memory_points.csv,
# validation_h100_bf16.csv and validation_sets.csv. Needs a built build/isthmus.
set -eu
data=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
results=reports/results/validate
tests=tests/data

# Ends with 1 where rows of sets are skipped; what they lack stands in the tables.
validate() {
  build/isthmus validate "$@" > /dev/null || [ $? -eq 1 ]
}
validate $tests/paper_runs.csv --out "$folder/paper"
validate "$data/validation_h100_bf16.csv" --out "$folder/h100_bf16"
validate $tests/accuracy_gate.csv $tests/accuracy_gate_memory.csv $tests/paper_runs.csv \
  --sets $tests/accuracy_gate_sets.csv --out "$folder/sets"
validate "$data/training_runs.csv" "$data/mimo_paper_runs.csv" "$data/memory_points.csv" \
  --sets "$data/validation_sets.csv" --out "$folder/all"
for study in paper h100_bf16 sets all; do
  rm -rf "${results:?}/$study"
  mkdir -p "$results/$study"
  cp "$folder/$study"/*.md "$folder/$study"/*.csv "$folder/$study"/*.svg "$results/$study/"
done
# The rows of the whole collection are too many to read or to keep.
rm "$results"/all/rows.md "$results"/all/assumptions.md "$results"/all/gain*
