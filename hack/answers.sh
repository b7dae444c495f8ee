#!/usr/bin/env bash
# Plays the recorded requests to Kubernetes v1.36.3 against our kube-apiserver, on the built-in store and on etcd, and fails on
# every answer that differs without a line in tests/answers/allowed.txt.
#
# usage: hack/answers.sh [embedded] [etcd] [-- OPTIONS OF THE PLAYER]
#   BIN                where kube-apiserver is (default: target/debug)
#   COXSWAIN_FACTS     where the recordings are, in answers/ (default: ../shared); where they are not, nothing is played, and
#                      that is a failure under CI=true
# Reports go to target/answers/STORE.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

FACTS=$(realpath -m "${COXSWAIN_FACTS:-../shared}")
BIN=${BIN:-${CARGO_TARGET_DIR:-target}/debug}
OUT=${CARGO_TARGET_DIR:-target}/answers
ETCD=${COXSWAIN_PREFIX:-/opt/coxswain}/bin/etcd

stores=()
while [ $# -gt 0 ]; do
  case $1 in
    embedded | etcd) stores+=("$1") ;;
    --) shift; break ;;
    *) echo "error: unknown argument $1 (see the head of $0)" >&2; exit 2 ;;
  esac
  shift
done
[ ${#stores[@]} -gt 0 ] || stores=(embedded etcd)

if [ ! -e "$FACTS/answers/play.py" ]; then
  echo "skipped: no recorded answers in $FACTS/answers (set COXSWAIN_FACTS)"
  if [ "${CI:-}" = true ]; then exit 1; fi
  exit 0
fi

# play STORE LOG [OPTIONS OF THE PLAYER]
play() {
  local store=$1 log=$2 options=(--port 34443); shift 2
  if [ "$store" = etcd ]; then options=(--port 34543 --etcd "$ETCD"); fi
  python3 "$FACTS/answers/play.py" --binaries "$(realpath "$BIN")" "${options[@]}" \
    --allowed tests/answers/allowed.txt --out "$OUT/$store" "$@" >"$log" 2>&1
}

# The scenarios of a log in which something differs, joined by commas.
differing() { sed -n 's/^\([^ ]*\): [0-9]* answers, [1-9][0-9]* different$/\1/p' "$1" | paste -sd, -; }

# Plays to one store, and says how it went; $1 is the store, the rest are options of the player.
judge() {
  local store=$1 log=$OUT/$1/play.log again status=0; shift
  if ! play "$store" "$log" "$@"; then
    grep -v ' 0 different$' "$log" | tail -n 40 || true
    # On a busy machine a request may come a second later than it was recorded: what differs has to differ twice.
    again=$(differing "$log")
    if [ -n "$again" ] && echo "== once more, on a fresh server: $again" && play "$store" "$OUT/$store/again.log" --only "$again"; then
      echo "nothing differs the second time"
    else
      status=1
      echo "what differs: $OUT/$store/differences.md"
      head -n 60 "$OUT/$store/differences.md" | cut -c 1-1000
    fi
  fi
  tail -n 1 "$log"
  return $status
}

# The stores side by side: the player and a server take turns, so that each pair keeps little more than one processor busy.
declare -A playing=()
for store in "${stores[@]}"; do
  mkdir -p "$OUT/$store"
  judge "$store" "$@" >"$OUT/$store/said" 2>&1 &
  playing[$store]=$!
done
status=0
for store in "${stores[@]}"; do
  wait "${playing[$store]}" || status=1
  echo "== answers over $store"
  cat "$OUT/$store/said"
done
exit $status
