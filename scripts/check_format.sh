#!/usr/bin/env bash
# Checks that our C++ sources are formatted as .clang-format says; with --fix, formats them:
#
#   scripts/check_format.sh [--fix] [PATH...]
#
# Needs clang-format 14: other versions break lines differently.
set -euo pipefail
cd "$(dirname "$0")/.."

clang_format=$(command -v clang-format-14 || command -v clang-format || true)
if [ -z "$clang_format" ] || ! "$clang_format" --version | grep -q 'version 14\.'; then
  echo "clang-format 14 is not installed (scripts/setup.sh --lint installs it)" >&2
  exit 77
fi

mode=(--dry-run --Werror)
if [ "${1:-}" = "--fix" ]; then
  mode=(-i)
  shift
fi
# Tracked files and new ones, so that a fresh clone and a working tree are both covered.
git ls-files -z --cached --others --exclude-standard -- "${@:-.}" |
  grep -zE '\.(h|cc)$' |
  xargs -0 -r -n 20 -P 2 "$clang_format" "${mode[@]}"
