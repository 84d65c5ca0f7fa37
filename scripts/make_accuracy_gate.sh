#!/bin/sh
# Makes the rows and today's errors of tests/e2e/accuracy_gate_test.py anew:
# make_accuracy_gate.sh DATA takes the rows from DATA (training_runs.csv, memory_points.csv and
# validation_sets.csv); without DATA only the errors are recorded again. Needs a built
# build/isthmus. Look at the difference before you commit it: it is what the gate lets through.
set -eu
data=${1:-}
if [ -n "$data" ]; then data=$(cd "$data" && pwd); fi
cd "$(dirname "$0")/.."
python3 scripts/accuracy_gate.py ${data:+--data "$data"} --binary build/isthmus --tests tests/data
