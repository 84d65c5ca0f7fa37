#!/usr/bin/env bash
# Runs a Python test with the tests' virtual environment where scripts/test.sh made one, else with
# the system's python3 (tests that need more than that skip themselves with exit code 77).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python="$root/.venv/bin/python"
[ -x "$python" ] || python=python3
export PYTHONPATH="$root/tests/support${PYTHONPATH:+:$PYTHONPATH}"
exec "$python" "$@"
