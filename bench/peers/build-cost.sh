#!/usr/bin/env bash
# Processor seconds, user and system, of building api-types in debug from nothing, its dependencies being there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

limit=40
CARGO_TARGET_DIR=$(mktemp -d)
export CARGO_TARGET_DIR CARGO_INCREMENTAL=0
trap 'rm -rf "$CARGO_TARGET_DIR"' EXIT

cargo build --locked --quiet -p api-machinery
TIMEFORMAT='%U %S'
read -r user system < <({ time cargo build --locked --quiet -p api-types; } 2>&1 | tail -1)
awk -v user="$user" -v system_="$system" -v limit="$limit" 'BEGIN {
  seconds = user + system_
  printf "RESULT api-types-clean-debug-build ours=%.1f peer=%d ratio=%.2f unit=cpu-s\n", seconds, limit, seconds / limit
}'
