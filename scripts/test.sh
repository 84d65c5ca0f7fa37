#!/usr/bin/env bash
# Installs what is missing, builds everything and runs all tests. Safe to run again.
#
# ISTHMUS_WERROR=ON makes compiler warnings errors. Arguments go to ctest: scripts/test.sh -L unit
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh --test

# Perfetto's published schema, to decode our traces with. Without it (no network) the tests that
# need it are skipped and say so.
venv_packages=(perfetto==0.59.1 'protobuf>=4,<8')
if [ ! -e .venv/isthmus-complete ]; then
  rm -rf .venv
  if python3 -m venv .venv &&
     .venv/bin/python -m pip install --quiet --disable-pip-version-check "${venv_packages[@]}"; then
    touch .venv/isthmus-complete
  else
    rm -rf .venv
    echo "warning: could not install ${venv_packages[*]}; tests that need them will be skipped" >&2
  fi
fi

cmake --preset release -DISTHMUS_WERROR="${ISTHMUS_WERROR:-OFF}" >/dev/null
cmake --build --preset release
ctest --preset release "$@"
