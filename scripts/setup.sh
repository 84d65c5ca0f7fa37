#!/usr/bin/env bash
# Installs the Debian packages that building Isthmus needs, only those that are missing:
#
#   scripts/setup.sh            what building and simulating needs
#   scripts/setup.sh --backend  that, and PyTorch for real ranks, into .torch (1.5 GB)
#   scripts/setup.sh --gpu      that, and CUDA's libraries for ranks on GPUs (4.6 GB in all)
#   scripts/setup.sh --test     what --backend installs, and what the tests need
#   scripts/setup.sh --lint     that, CUDA's libraries, clang-format and clang-tidy
#   scripts/setup.sh --fit      what building and simulating needs, and numpy and scipy for scripts/fit/
#
# Runs as root or with sudo; does nothing (and needs no network) when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

build_packages=(
  g++ cmake ninja-build ccache git python3 ca-certificates
  libboost-dev libcli11-dev libfmt-dev libprotobuf-dev libsimgrid-dev libspdlog-dev libyaml-cpp-dev
  libzstd-dev nlohmann-json3-dev protobuf-compiler
)
backend_packages=(libgloo-dev python3-venv)
test_packages=(libbenchmark-dev libgmock-dev libgtest-dev python3-venv)
lint_packages=(clang-format-14 clang-tidy-14)
fit_packages=(python3-numpy python3-scipy)

with_torch=no  # no, cpu or gpu
case "${1:-}" in
  --backend | --test) with_torch=cpu ;;
  --gpu | --lint) with_torch=gpu ;;
esac
case "${1:-}" in
  "") wanted=("${build_packages[@]}") ;;
  --backend | --gpu) wanted=("${build_packages[@]}" "${backend_packages[@]}") ;;
  --test) wanted=("${build_packages[@]}" "${backend_packages[@]}" "${test_packages[@]}") ;;
  --lint)
    wanted=("${build_packages[@]}" "${backend_packages[@]}" "${test_packages[@]}"
            "${lint_packages[@]}") ;;
  --fit) wanted=("${build_packages[@]}" "${fit_packages[@]}") ;;
  *) echo "usage: scripts/setup.sh [--backend|--gpu|--test|--lint|--fit]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "This is not a Debian system, so nothing was installed. Isthmus is built and tested on" >&2
  echo "Debian 12; elsewhere install by hand what these packages hold:" >&2
  printf '  %s\n' "${wanted[@]}" >&2
  exit 1
fi

# PyTorch for ranks on CPUs: torch carries both halves, and these two its CPU half needs. For GPUs
# with all that torch depends on.
cpu_wheels=(--no-deps torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
gpu_wheels=(torch==2.11.0)
install_torch() {
  if [ -e ".torch/isthmus-$1" ] || [ -e .torch/isthmus-gpu ]; then return; fi
  local wheels=("${cpu_wheels[@]}")
  if [ "$1" = gpu ]; then wheels=("${gpu_wheels[@]}"); fi
  echo "Installing torch 2.11.0 ($1) into .torch"
  if ! { python3 -m venv .torch &&
         .torch/bin/python -m pip install --quiet --disable-pip-version-check "${wheels[@]}"; }; then
    echo "Installing ${wheels[*]} failed; without it everything but \`run\` and \`calibrate\` works." >&2
    exit 1
  fi
  touch ".torch/isthmus-$1"
}

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  if [ "$with_torch" != no ]; then install_torch "$with_torch"; fi
  exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
  as_root=()
elif command -v sudo >/dev/null; then
  as_root=(sudo)
else
  echo "These packages are missing, and installing them needs root or sudo:" >&2
  echo "  apt-get install ${missing[*]}" >&2
  exit 1
fi

echo "Installing ${#missing[@]} missing packages: ${missing[*]}"
run_apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
    -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "$@"
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { run_apt update && run_apt install --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "Installing the packages failed. Isthmus is built and tested on Debian 12." >&2
  exit 1
fi
if [ "$with_torch" != no ]; then install_torch "$with_torch"; fi
