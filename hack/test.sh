#!/usr/bin/env bash
# Runs tests and says in its last line how many of them were skipped: libtest keeps what passing tests print to itself.
#
# usage: hack/test.sh                          everything
#        hack/test.sh --quick                  what needs no binaries, no images and no root
#        hack/test.sh [ARGUMENTS OF cargo test]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# `make deps` puts etcd and newer tools there, beside the system's own.
export PATH="$HOME/.cargo/bin:$PATH:${COXSWAIN_PREFIX:-/opt/coxswain}/bin"

STORY=what_is_declared_comes_about_after_faults
BESIDE=
case ${1:-} in
  "") set -- --workspace; BESIDE=yes ;;
  --quick)
    # All test programs but those of the end-to-end stories and of kubectl: cargo has no option to leave out a single one.
    set -- --workspace --exclude bench --lib --bins --test '[!ek]*'
    export COXSWAIN_IMAGES=/nonexistent COXSWAIN_SIM_SEEDS=${COXSWAIN_SIM_SEEDS:-20}
    ;;
esac

COXSWAIN_SKIPPED=$(mktemp)
STORIES=$(mktemp)
export COXSWAIN_SKIPPED
trap 'rm -f "$COXSWAIN_SKIPPED" "$STORIES"' EXIT

rc=0
# The simulation's stories need minutes of every processor, and most of the rest waits for something: they are played beside
# it, and give way to it. (`--workspace` again: with other packages cargo would build with other features.)
if [ -n "$BESIDE" ]; then
  cargo test --locked --no-run "$@"
  # What the end-to-end story of clients needs; it says so itself where there is none.
  nice -n 19 hack/clients.sh install >/dev/null 2>&1 &
  nice -n 19 cargo test --locked "$@" --test simulation -- "$STORY" >"$STORIES" 2>&1 &
  stories=$!
  COXSWAIN_SIM_SEEDS=0 cargo test --locked --no-fail-fast "$@" || rc=$?
  wait "$stories" || rc=$?
  echo "== the simulation's stories"
  cat "$STORIES"
  # A name that no test has any more passes, too.
  grep -q "^test $STORY \.\.\. ok" "$STORIES" || rc=1
else
  cargo test --locked --no-fail-fast "$@" || rc=$?
fi
sort -u -o "$COXSWAIN_SKIPPED" "$COXSWAIN_SKIPPED"
sed 's/^/skipped: /' "$COXSWAIN_SKIPPED"
count=$(wc -l <"$COXSWAIN_SKIPPED")
case $rc,$count in
  0,0) echo "tests passed, none was skipped" ;;
  0,*) echo "tests passed, $count skipped (see above)" ;;
  *) echo "tests FAILED, $count skipped" ;;
esac
exit $rc
