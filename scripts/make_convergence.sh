#!/bin/sh
# Makes the losses and pictures of reports/results/convergence/ anew, in about an hour on two cores.
# Needs build/isthmus and build/isthmus-rank.
set -eu
cd "$(dirname "$0")/.."
results=reports/results/convergence
scripts/convergence.py precisions -o $results
scripts/convergence.py layouts -o $results
