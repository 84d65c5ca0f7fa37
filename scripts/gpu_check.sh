#!/usr/bin/env bash
# The checks that need a GPU, in under 5 minutes: device tests, the same training on CPU and GPU
# ranks, calibration with a minute of products, and one prediction held against its run.
#
#   PACKAGE/gpu_check.sh OUT [--device gpu|cpu] [--only PART]     small result files go to OUT
#
# PACKAGE is the folder that scripts/gpu_package.sh made; this script lies in it. The machine needs
# torch 2.11.0 for CUDA 13 where python3 (or $PYTHON) finds it, and a GPU. `--device cpu` runs the
# same without one: what can be checked where the package is made. Every part runs even if one before
# it failed.
set -uo pipefail

package=$(cd "$(dirname "$0")" && pwd)
out=
device=gpu
only=
while [ $# -gt 0 ]; do
  case $1 in
    --device) device=${2:-}; shift ;;
    --only) only=${2:-}; shift ;;
    *) out=$1 ;;
  esac
  shift
done
case $device in
  gpu) calibrate=(--device gpu) twin=gpu-twin cluster=single-gpu ;;
  cpu) calibrate=(--quick) twin=twin cluster=cpu-host ;;
  *) device= ;;
esac
if [ -z "$out" ] || [ -z "$device" ]; then
  echo "usage: $0 OUT [--device gpu|cpu] [--only PART]" >&2
  exit 2
fi
if [ ! -e "$package/isthmus" ]; then
  echo "$package has no isthmus: run the copy in the folder that scripts/gpu_package.sh makes" >&2
  exit 2
fi
mkdir -p "$out"
out=$(cd "$out" && pwd)
python=${PYTHON:-python3}

# Without importing torch, which takes seconds.
site=$("$python" - <<'PY'
import importlib.util, os
found = importlib.util.find_spec("torch")
print(os.path.dirname(os.path.dirname(found.origin)) if found else "")
PY
)
if [ -z "$site" ]; then
  echo "$python finds no torch; PYTHON=… names another" >&2
  exit 2
fi
nvidia=$(find "$site/nvidia" -type d -name lib 2>/dev/null | sort | paste -sd:)
export LD_LIBRARY_PATH="$package/lib:$site/torch/lib${nvidia:+:$nvidia}"
export OMP_NUM_THREADS=1
isthmus=$package/isthmus
scenario=$package/scenarios/host/twin.yaml

parts=(libraries device_tests parity_of_ranks_that_share parity_of_one_rank calibration prediction)
if [ -n "$only" ] && [[ " ${parts[*]} " != *" $only "* ]]; then
  echo "--only $only: no part; allowed: ${parts[*]}" >&2
  exit 2
fi

failed=()
part() {
  local name=$1 started=$SECONDS
  if [ -n "$only" ] && [ "$only" != "$name" ]; then return; fi
  printf '\n==== %s\n' "$name"
  "$name" 2>&1 | tee "$out/$name.log"
  if [ "${PIPESTATUS[0]}" -ne 0 ]; then failed+=("$name"); fi
  echo "$name: $((SECONDS - started)) s"
}

# Each library is the package's, torch's or the C library's: nothing else is taken from this machine.
libraries() {
  local foreign
  foreign=$(ldd "$package"/isthmus "$package"/isthmus-rank "$package"/device_test \
                "$package"/libisthmus_cuda.so "$package"/lib/*.so* |
            awk '$2 == "=>" { print $1, $3 " " $4 }' | sort -u |
            grep -Ev " ($package/lib|$site)/| /[^ ]*/lib(c|m|dl|rt|util|pthread)\.so")
  # The driver's own library comes with a GPU's driver.
  if [ "$device" = cpu ]; then foreign=$(grep -v '^libcuda\.so' <<<"$foreign"); fi
  if [ -z "$foreign" ]; then return 0; fi
  printf 'not in the package:\n%s\n' "$foreign"
  return 1
}

device_tests() {
  local summary="$out/device_tests.txt"
  "$package/device_test" --gtest_color=no | tee "$summary" || return 1
  # Without a GPU all but one skip themselves; with one none may.
  [ "$device" = cpu ] || ! grep -q SKIPPED "$summary"
}

# The losses of a few steps in fp32 must agree to 1e-4: kernels differ in the order of sums, no more.
same_losses() {
  "$python" - "$1" "$2" <<'PY'
import json, sys
cpu, other = ([s["loss"] for s in json.load(open(f))["steps"]] for f in sys.argv[1:3])
worst = max(abs(a - b) / abs(a) for a, b in zip(cpu, other))
print(f"{len(cpu)} steps, losses differ by {worst:.2e} at most")
sys.exit(len(cpu) != len(other) or worst > 1e-4)
PY
}

train() { "$isthmus" run "$scenario" --steps 5 --json "$@"; }

# Four ranks: on a GPU they share it, over Gloo through the host.
parity_of_ranks_that_share() {
  train --ranks-on cpu >"$out/cpu.json" && train --ranks-on "$device" >"$out/shared.json" &&
    same_losses "$out/cpu.json" "$out/shared.json"
}

# One rank with a GPU of its own, over NCCL.
parity_of_one_rank() {
  local one=(--set modules.vision.layout.dp=1 --set modules.language.layout.tp=1
             --set modules.language.layout.dp=1)
  train "${one[@]}" --ranks-on cpu >"$out/cpu_one.json" &&
    train "${one[@]}" --ranks-on "$device" >"$out/one.json" &&
    same_losses "$out/cpu_one.json" "$out/one.json"
}

calibration() { "$isthmus" calibrate "${calibrate[@]}" -o "$out/$cluster.yaml"; }

prediction() {
  local file=$package/scenarios/host/$twin.yaml
  "$isthmus" simulate "$file" --set "profile=$out/$cluster.yaml" --trace "$out/predicted.isthmus" &&
    "$isthmus" run "$file" --ranks-on "$device" --steps 20 --trace "$out/measured.isthmus" &&
    "$isthmus" compare "$out/predicted.isthmus" "$out/measured.isthmus" &&
    "$isthmus" compare "$out/predicted.isthmus" "$out/measured.isthmus" --json \
      -o "$out/comparison.json"
}

if [ "$device" = gpu ]; then
  nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,power.limit --format=csv |
    tee "$out/gpu.csv"
fi
for name in "${parts[@]}"; do
  part "$name"
done
echo
du -sh "$out"
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}"
  exit 1
fi
echo "all parts passed in $SECONDS s"
