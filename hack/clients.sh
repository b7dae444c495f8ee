#!/usr/bin/env bash
# Programs that nobody here wrote against a cluster: the Python package `kubernetes`, @kubernetes/client-node, the crate
# `kube`, each driven by a suite in tests/clients. Fetches them from their registries the first time, into TARGET_DIR/clients.
#
# usage: hack/clients.sh install [CLIENT...]    fetches and builds; all without a name
#        hack/clients.sh run CLIENT             fetches what is not there, and runs its suite
#
# CLIENT is python, node or rust. A suite takes KUBECONFIG, NAMESPACE, POD and WEB (see there). Ends with 75 where a
# registry cannot be reached or a program is not there that `make deps` installs.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SUITES=$ROOT/tests/clients
# The toolchain is that of the directory.
cd "$ROOT"
export PATH="$HOME/.cargo/bin:$PATH"
MADE=${CARGO_TARGET_DIR:-$ROOT/target}/clients
UNAVAILABLE=75

unavailable() { printf '%s\n' "$*" >&2; exit $UNAVAILABLE; }
needs() { command -v "$1" >/dev/null || unavailable "$1 is not there: make deps installs it"; }

# What was fetched for a list of packages counts for that list only.
is_made() { cmp -s "$1" "$2"; }

install_python() {
  needs python3
  local list=$SUITES/python/requirements.txt
  is_made "$list" "$MADE/python/made" && return
  rm -rf "$MADE/python"
  python3 -m venv "$MADE/python" || unavailable "python3 has no venv: make deps installs it"
  "$MADE/python/bin/pip" install --quiet --disable-pip-version-check -r "$list" || unavailable "packages of Python cannot be fetched"
  cp "$list" "$MADE/python/made"
}

install_node() {
  needs npm
  is_made "$SUITES/node/package-lock.json" "$MADE/node/made" && return
  rm -rf "$MADE/node" && mkdir -p "$MADE/node"
  cp "$SUITES"/node/package*.json "$MADE/node"
  (cd "$MADE/node" && npm ci --silent --no-fund --no-audit --ignore-scripts) || unavailable "packages of Node cannot be fetched"
  cp "$SUITES/node/package-lock.json" "$MADE/node/made"
}

install_rust() {
  local manifest=$SUITES/rust/Cargo.toml
  cargo fetch --quiet --locked --manifest-path "$manifest" || unavailable "crates cannot be fetched"
  cargo build --quiet --locked --manifest-path "$manifest" --target-dir "$MADE/rust"
}

run_python() { exec "$MADE/python/bin/python" "$SUITES/python/suite.py"; }
# Imports are looked for from where the program is.
run_node() { cp "$SUITES/node/suite.mjs" "$MADE/node" && exec node "$MADE/node/suite.mjs"; }
run_rust() { exec "$MADE/rust/debug/clients-rust"; }

# One at a time: who comes second finds it made.
locked() { mkdir -p "$MADE" && flock "$MADE/$1.lock" "$ROOT/hack/clients.sh" "make-$1"; }

case "${1:-} ${2:-}" in
  "make-python " | "make-node " | "make-rust ") "install_${1#make-}" ;;
  install\ *)
    shift
    [ $# -gt 0 ] || set -- python node rust
    for client in "$@"; do locked "$client"; done
    ;;
  "run python" | "run node" | "run rust") locked "$2" && "run_$2" ;;
  *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' hack/clients.sh; exit 2 ;;
esac
