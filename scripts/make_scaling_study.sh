#!/bin/sh
# Makes the figures and pictures of reports/results/scaling/ anew, in two minutes on two quiet
# cores. Needs build/isthmus.
set -eu
cd "$(dirname "$0")/.."
scripts/scaling_study.py -o reports/results/scaling
