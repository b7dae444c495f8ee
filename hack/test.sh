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

case ${1:-} in
  "") set -- --workspace ;;
  --quick)
    # All test programs but the end-to-end one: cargo has no option to leave out a single one.
    set -- --workspace --exclude bench --lib --bins --test '[!e]*'
    export COXSWAIN_IMAGES=/nonexistent
    ;;
esac

COXSWAIN_SKIPPED=$(mktemp)
export COXSWAIN_SKIPPED
trap 'rm -f "$COXSWAIN_SKIPPED"' EXIT

rc=0
cargo test --locked --no-fail-fast "$@" || rc=$?
sort -u -o "$COXSWAIN_SKIPPED" "$COXSWAIN_SKIPPED"
sed 's/^/skipped: /' "$COXSWAIN_SKIPPED"
count=$(wc -l <"$COXSWAIN_SKIPPED")
case $rc,$count in
  0,0) echo "tests passed, none was skipped" ;;
  0,*) echo "tests passed, $count skipped (see above)" ;;
  *) echo "tests FAILED, $count skipped" ;;
esac
exit $rc
