#!/usr/bin/env bash
# Puts what scripts/gpu_check.sh runs on a machine with a GPU into one folder: programs, tests, the
# GPU library and the Debian libraries they need, stripped, under 60 MiB. The other machine brings
# torch 2.11.0 for CUDA 13 and nothing else.
#
#   scripts/setup.sh --gpu && scripts/gpu_package.sh [FOLDER]     (default: gpu_package)
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-gpu_package}
limit_mib=60
programs=(isthmus isthmus-rank)
tests=(device_test)

cmake --preset release >/dev/null
cmake --build --preset release --target "${programs[@]}" "${tests[@]}" isthmus_cuda

rm -rf "$folder"
mkdir -p "$folder/lib"
for program in "${programs[@]}"; do cp "build/$program" "$folder/"; done
for test in "${tests[@]}"; do cp "build/tests/$test" "$folder/"; done
cp build/libisthmus_cuda.so "$folder/"

# Debian's libraries, but for the C library's own, which every machine has, and torch's and CUDA's.
ldd "$folder"/isthmus "$folder"/isthmus-rank "$folder"/device_test "$folder"/libisthmus_cuda.so |
  awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
  grep -Ev '/(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\.so|site-packages' |
  xargs -r -I{} cp -L {} "$folder/lib/"
cp -L "$(g++ -print-file-name=libstdc++.so.6)" "$folder/lib/"
strip --strip-unneeded "$folder"/isthmus "$folder"/isthmus-rank "$folder"/device_test \
  "$folder"/libisthmus_cuda.so "$folder"/lib/*

size_mib=$(du -sm "$folder" | cut -f1)
echo "$folder: $size_mib MiB"
if [ "$size_mib" -gt "$limit_mib" ]; then
  echo "more than $limit_mib MiB" >&2
  exit 1
fi
