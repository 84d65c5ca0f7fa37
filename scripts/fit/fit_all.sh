#!/bin/sh
# Makes all fitted profiles, the residuals, the plots and the tests' facts anew:
#
#     scripts/fit/fit_all.sh DATA [DATE]
#
# DATA holds kernels.csv and collectives.csv; DATE (default: today) is stated in the profiles. Needs
# Debian's python3-numpy and python3-scipy (scripts/setup.sh --fit installs them). The same tables
# and the same versions of both give the same bytes.
set -eu
data=$(cd "$1" && pwd)
date=${2:-$(date +%F)}
cd "$(dirname "$0")/../.."
python=${PYTHON:-/usr/bin/python3}  # Debian's, whatever else is first in the path
for gpu in h100-sxm h200-sxm a100-sxm; do
  for table in kernels collectives; do
    "$python" "scripts/fit/fit_$table.py" --data "$data" --gpu "$gpu" --date "$date" \
      -o "scenarios/profiles/$gpu.$table.yaml"
  done
done
"$python" scripts/fit/score.py --data "$data" -o reports/results/fits
"$python" scripts/fit/plot_residuals.py --data "$data" -o docs/models/plots
"$python" scripts/fit/select_facts.py --data "$data" -o tests/data
