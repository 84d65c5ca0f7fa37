#!/usr/bin/env bash
# From a bare checkout to a first prediction and its twin: installs what is missing, builds, simulates
# a training step of a small vision-language model on 8 GPUs, prints the report and writes a trace to
# look at; then calibrates this machine, predicts a step of a smaller model on 4 of its CPU ranks, trains
# it on 4 real ranks, and compares the two op by op. Safe to run again; then it only does what changed.
#
#   scripts/quickstart.sh [--simulate-only]     (without libtorch: stops before the twin)
set -euo pipefail
cd "$(dirname "$0")/.."

twin=yes
for option in "$@"; do
  case "$option" in
    --simulate-only) twin=no ;;
    *) echo "usage: scripts/quickstart.sh [--simulate-only]" >&2; exit 2 ;;
  esac
done

targets=(isthmus)
if [ "$twin" = yes ]; then
  scripts/setup.sh --backend
  targets+=(isthmus-rank)
else
  scripts/setup.sh
fi

# Tests and their libraries are left to scripts/test.sh.
build() {
  cmake --preset release -DBUILD_TESTING=OFF >"$log" 2>&1 || return
  if [ -t 1 ]; then
    cmake --build --preset release --target "${targets[@]}"  # A line that counts up.
  else
    cmake --build --preset release --target "${targets[@]}" >>"$log" 2>&1
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

run() {
  printf '\n$ %s\n' "$*"
  "$@"
}

trace=out/quickstart.pftrace
run build/isthmus simulate scenarios/quickstart.yaml --trace "$trace"
cat <<END

The trace of every rank lies in $trace ($(du -h "$trace" | cut -f1)).
To see it, open https://ui.perfetto.dev and drop the file there; it stays on your machine.
END
if [ "$twin" = no ]; then exit 0; fi

# The twin: what this machine was measured to do, a prediction from it, the same program for real.
profile=out/this-machine.yaml
run build/isthmus calibrate --quick -o "$profile"
run build/isthmus simulate scenarios/host/twin.yaml --set "profile=$profile" --trace out/predicted.isthmus
run build/isthmus run scenarios/host/twin.yaml --steps 20 --trace out/measured.isthmus
run build/isthmus compare out/predicted.isthmus out/measured.isthmus --perfetto out/twin.pftrace
cat <<END

Prediction and measurement lie side by side in out/twin.pftrace, for https://ui.perfetto.dev.
END
