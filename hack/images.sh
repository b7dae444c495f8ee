#!/usr/bin/env bash
# Builds the test images (pause, busybox, echoserver 1.4 and 1.5) as archives, and imports them into a containerd;
# no registry and no docker. `coxswain up` imports the same archives.
#
# usage: hack/images.sh build [DIR]             archives in DIR (default: $COXSWAIN_IMAGES or target/images)
#        hack/images.sh import SOCKET [DIR]     into the containerd at SOCKET (/run/containerd/containerd.sock)
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH="$PATH:/usr/sbin:/sbin:$HOME/.cargo/bin"
TARGET=$(rustc -vV | sed -n "s/^host: //p")
BUILD=${CARGO_TARGET_DIR:-$ROOT/target}

say() { printf '==> %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }

build() {
  local out=$1 busybox
  busybox=$(command -v busybox) || die "busybox is missing: run hack/install-deps.sh"
  # A dynamic busybox would not start in an image that has no C library.
  ! readelf -lW "$busybox" | grep -q INTERP || die "$busybox is not static: install busybox-static"
  say "building the programs"
  RUSTFLAGS='-C target-feature=+crt-static' cargo build --quiet --release --target "$TARGET" \
    --manifest-path "$ROOT/images/Cargo.toml" --target-dir "$BUILD/static"
  SCRATCH=$(mktemp -d); trap 'rm -rf "$SCRATCH"' EXIT
  "$busybox" --list >"$SCRATCH/applets"
  say "packing into $out"
  cargo run --quiet --manifest-path "$ROOT/Cargo.toml" -p xtask -- images --programs "$BUILD/static/$TARGET/release" \
    --busybox "$busybox" --applets "$SCRATCH/applets" --out "$out"
  ls -l "$out"
}

import() {
  local socket=$1 out=$2 archive
  [ -S "$socket" ] || die "$socket is not a socket: is containerd running there?"
  compgen -G "$out/*.tar" >/dev/null || die "no archives in $out: run hack/images.sh build"
  for archive in "$out"/*.tar; do
    say "importing ${archive##*/}"
    ctr -a "$socket" -n k8s.io images import "$archive" >/dev/null || die "containerd refused $archive"
  done
}

images_dir() { printf '%s\n' "${1:-${COXSWAIN_IMAGES:-$BUILD/images}}"; }

case ${1:-} in
  build) build "$(images_dir "${2:-}")" ;;
  import) [ -n "${2:-}" ] || { usage >&2; exit 2; }; import "$2" "$(images_dir "${3:-}")" ;;
  -h | --help) usage ;;
  *) usage >&2; exit 2 ;;
esac
