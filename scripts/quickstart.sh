#!/usr/bin/env bash
# From a bare checkout to a first prediction: installs what is missing, builds `isthmus`, simulates
# a training step of a small vision-language model on 8 GPUs, prints the report and writes a trace
# to look at. Safe to run again; then it only does what changed.
#
#   scripts/quickstart.sh [--simulate-only]     (the option is accepted; simulating is all it does)
set -euo pipefail
cd "$(dirname "$0")/.."

for option in "$@"; do
  case "$option" in
    --simulate-only) ;;
    *) echo "usage: scripts/quickstart.sh [--simulate-only]" >&2; exit 2 ;;
  esac
done

scripts/setup.sh

# Tests and their libraries are left to scripts/test.sh.
build() {
  cmake --preset release -DBUILD_TESTING=OFF >"$log" 2>&1 || return
  if [ -t 1 ]; then
    cmake --build --preset release --target isthmus  # A line that counts up.
  else
    cmake --build --preset release --target isthmus >>"$log" 2>&1
  fi
}
echo "Building (the first time takes some minutes)"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! build; then
  tail -n 40 "$log" >&2
  echo "The build failed." >&2
  exit 1
fi

trace=out/quickstart.pftrace
command=(build/isthmus simulate scenarios/quickstart.yaml --trace "$trace")
printf '\n$ %s\n' "${command[*]}"
"${command[@]}"
cat <<END

The trace of every rank lies in $trace ($(du -h "$trace" | cut -f1)).
To see it, open https://ui.perfetto.dev and drop the file there; it stays on your machine.
END
