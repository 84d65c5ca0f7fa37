#!/usr/bin/env bash
# Puts what the checks on a machine with a GPU need into one folder: programs, tests, the GPU library,
# the Debian libraries they use, stripped, the scenarios and scripts/gpu_check.sh; under 60 MiB. The
# other machine brings torch 2.11.0 for CUDA 13, python3, and nothing else.
#
#   scripts/setup.sh --gpu && scripts/gpu_package.sh [FOLDER]     (default: gpu_package)
#
# With --no-build in front, what build/ holds is taken as it is.
set -euo pipefail
cd "$(dirname "$0")/.."

build=yes
if [ "${1:-}" = --no-build ]; then
  build=no
  shift
fi
folder=${1:-gpu_package}
limit_mib=60
programs=(build/isthmus build/isthmus-rank build/libisthmus_cuda.so build/tests/device_test)

if [ "$build" = yes ]; then
  cmake --preset release >/dev/null
  cmake --build --preset release --target isthmus isthmus_rank isthmus_cuda device_test
fi
for program in "${programs[@]}"; do
  if [ ! -e "$program" ]; then
    echo "$program is not there: scripts/setup.sh --gpu brings what building it needs" >&2
    exit 2
  fi
done

rm -rf "$folder"
mkdir -p "$folder/lib"
cp "${programs[@]}" scripts/gpu_check.sh "$folder/"
cp -r scenarios "$folder/"
find "$folder/scenarios" -type f ! -name '*.yaml' -delete
find "$folder/scenarios" -type d -empty -delete

# Debian's libraries. Every machine has the C library's own; torch's and CUDA's come with torch.
ldd "${programs[@]}" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
  grep -Ev '/(ld-linux-x86-64|lib(c|m|dl|rt|util|pthread))\.so|/site-packages/|/build/' |
  xargs -r -I{} cp -L {} "$folder/lib/"
strip --strip-unneeded "$folder"/isthmus "$folder"/isthmus-rank "$folder"/device_test \
  "$folder"/*.so "$folder"/lib/*

size_mib=$(du -sm "$folder" | cut -f1)
echo "$folder: $size_mib MiB"
if [ "$size_mib" -gt "$limit_mib" ]; then
  echo "more than $limit_mib MiB" >&2
  exit 1
fi
