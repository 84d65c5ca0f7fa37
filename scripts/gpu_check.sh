#!/usr/bin/env bash
# The checks that need a GPU, in under 5 minutes: device tests, the same training on CPU and GPU
# ranks, calibration, and one prediction held against its measurement.
#
#   scripts/gpu_check.sh OUT [PACKAGE]     small result files go to OUT; PACKAGE: gpu_package
#
# Needs a machine with a GPU and torch 2.11.0 for CUDA 13 where python3 finds it, and the folder that
# scripts/gpu_package.sh made. Every part runs even if one before it failed.
set -uo pipefail
cd "$(dirname "$0")/.."

out=${1:?usage: scripts/gpu_check.sh OUT [PACKAGE]}
package=$(realpath "${2:-gpu_package}")
mkdir -p "$out"
scenario=scenarios/examples/vlm-twin.yaml

site=$(python3 -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))') || exit 1
cuda=$(find "$site"/nvidia -type d -name lib 2>/dev/null | paste -sd:)
export LD_LIBRARY_PATH="$package/lib:$site/torch/lib:$cuda"
export OMP_NUM_THREADS=1

failed=()
part() {
  local name=$1 started=$SECONDS
  shift
  printf '\n==== %s\n' "$name"
  if "$@" 2>&1 | tee "$out/$name.log"; [ "${PIPESTATUS[0]}" -ne 0 ]; then failed+=("$name"); fi
  echo "$name: $((SECONDS - started)) s"
}

device_tests() { "$package/device_test" --gtest_color=no; }

# The losses of a few steps in fp32 must agree to 1e-4: kernels differ in order of sums, no more.
parity() {
  local steps=5
  "$package/isthmus" run "$scenario" --ranks-on cpu --steps $steps --json >"$out/cpu_run.json" &&
    "$package/isthmus" run "$scenario" --ranks-on gpu --steps $steps --json >"$out/gpu_run.json" &&
    python3 - "$out/cpu_run.json" "$out/gpu_run.json" <<'PY'
import json, sys
cpu, gpu = ([s["loss"] for s in json.load(open(f))["steps"]] for f in sys.argv[1:3])
worst = max(abs(a - b) / abs(a) for a, b in zip(cpu, gpu))
print(f"{len(cpu)} steps, losses differ by {worst:.2e} at most")
sys.exit(len(cpu) != len(gpu) or worst > 1e-4)
PY
}

one_rank_over_nccl() {
  "$package/isthmus" run "$scenario" --ranks-on gpu --steps 5 --set model.language.layout.tp=1
}

calibrate() { "$package/isthmus" calibrate --device gpu -o "$out/gpu_profile.yaml"; }

twin() {
  "$package/isthmus" simulate "$scenario" --set "cluster.profile=$out/gpu_profile.yaml" \
    --trace "$out/predicted.isthmus" >/dev/null &&
    "$package/isthmus" run "$scenario" --ranks-on gpu --steps 20 --trace "$out/measured.isthmus" &&
    "$package/isthmus" compare "$out/predicted.isthmus" "$out/measured.isthmus"
}

nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,power.limit --format=csv | tee "$out/gpu.csv"
part device_tests device_tests
part parity parity
part one_rank_over_nccl one_rank_over_nccl
part calibrate calibrate
part twin twin
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}"
  exit 1
fi
