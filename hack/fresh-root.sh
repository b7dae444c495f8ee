#!/usr/bin/env bash
# Proves hack/install-deps.sh: makes the smallest Debian there is, runs the script in it as on a new machine, and builds
# there the crates whose build scripts call programs of the system. A package that is missing from the script's list is
# missing here, whatever the machine itself happens to have.
#
# usage: hack/fresh-root.sh [SUITE]    a release of Debian (default: the machine's own)
#
# Needs root and debootstrap. Rust and cargo's downloads are the machine's, bound in; all packages come from the mirror
# that the machine's apt uses. The bare system, its packages and what was built stay in TARGET_DIR/fresh-root for the
# next run; what was built counts only as long as the root has the same packages. Mounts are in a namespace of their own:
# they end with the script, however it ends.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH="$HOME/.cargo/bin:$PATH:/usr/sbin:/sbin" LC_ALL=C.UTF-8

say() { printf '==> %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }

# The mirror of Debian itself that this machine already uses, whatever the format of its source lists.
debian_mirror() {
  apt-get indextargets --format '$(LABEL)|$(REPO_URI)' 'Created-By: Packages' | sed -n 's/^Debian|//p' | head -n 1
}

# The smallest system as an archive, made once for a release.
bare_system() {
  local archive=$CACHE/bare.tar mirror include=()
  [ ! -e "$archive" ] || return 0
  command -v debootstrap >/dev/null || die "debootstrap is missing: run hack/install-deps.sh"
  mirror=$(debian_mirror)
  [ -n "$mirror" ] || die "cannot tell the Debian mirror from this machine's package sources; run apt-get update first"
  say "making a bare $SUITE from $mirror"
  # A mirror that speaks TLS is of no use to a system that knows no authorities.
  if [[ $mirror = https:* ]]; then include=(--include=ca-certificates); fi
  debootstrap --variant=minbase "${include[@]}" "$SUITE" "$SCRATCH/bare" "$mirror" >"$SCRATCH/log" 2>&1 ||
    { tail -n 20 "$SCRATCH/log" >&2; die "debootstrap failed"; }
  tar -C "$SCRATCH/bare" --one-file-system -cf "$archive.new" . && mv "$archive.new" "$archive"
  rm -rf "$SCRATCH/bare"
}

# What the new system takes from this one: names on the network, how apt gets at its mirror, and no more.
unpack_system() {
  mkdir -p "$SYSTEM" && tar -C "$SYSTEM" -xf "$CACHE/bare.tar"
  cp -L /etc/resolv.conf /etc/hosts "$SYSTEM/etc/"
  apt-config dump | grep -E '^Acquire::(https?|Retries|Check-)' >"$SYSTEM/etc/apt/apt.conf.d/99mirror" || :
  # Packages are kept for the next run, and no daemon is started.
  rm -f "$SYSTEM/etc/apt/apt.conf.d/docker-clean"
  printf 'Binary::apt-get::APT::Keep-Downloaded-Packages "true";\n' >"$SYSTEM/etc/apt/apt.conf.d/99keep"
  printf '#!/bin/sh\nexit 101\n' >"$SYSTEM/usr/sbin/policy-rc.d" && chmod +x "$SYSTEM/usr/sbin/policy-rc.d"
  mkdir -p "$SYSTEM"/{src,rust,cargo/registry,target}
}

# Runs in namespaces of its own. Nothing is bound that a program of the machine could be found by.
enter() {
  mount -t proc proc "$SYSTEM/proc"
  mount --bind -o ro "$ROOT" "$SYSTEM/src"
  mount --bind -o ro "$TOOLCHAIN" "$SYSTEM/rust"
  mount --bind "$REGISTRY" "$SYSTEM/cargo/registry"
  mount --bind "$CACHE/packages" "$SYSTEM/var/cache/apt/archives"
  mount --bind "$CACHE/target" "$SYSTEM/target"
  exec chroot "$SYSTEM" /usr/bin/env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 CARGO_HOME=/cargo CARGO_TARGET_DIR=/target \
    CARGO_INCREMENTAL=0 PATH=/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    bash -euo pipefail -c "$INSIDE"
}

# What a new machine does. What the last run built was built by the same packages, or goes.
INSIDE='
/src/hack/install-deps.sh --skip-rust --skip-tools
dpkg-query -W >/tmp/packages
cmp -s /tmp/packages /target/packages || find /target -mindepth 1 -delete
echo "==> building what calls programs of the system"
cd /src && cargo build --quiet --locked --offline -p storage -p node-api -p sys
cp /tmp/packages /target/packages
apt-get -qq autoclean  # versions that the mirror no longer has
'

main() {
  [ "${1:-}" != --enter ] || { enter; return; }
  case ${1:-} in -h | --help) usage; return ;; -*) usage >&2; exit 2 ;; esac
  [ "$(id -u)" = 0 ] || die "must run as root"
  SUITE=${1:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
  CACHE=$(realpath -m "${CARGO_TARGET_DIR:-$ROOT/target}")/fresh-root/$SUITE
  mkdir -p "$CACHE"/{packages/partial,target}
  SCRATCH=$(mktemp -d "$CACHE/run.XXXXXX"); trap 'rm -rf --one-file-system "$SCRATCH"' EXIT
  SYSTEM=$SCRATCH/system
  TOOLCHAIN=$(cd "$ROOT" && rustc --print sysroot)
  REGISTRY=${CARGO_HOME:-$HOME/.cargo}/registry
  (cd "$ROOT" && cargo fetch --quiet --locked)
  bare_system
  unpack_system
  export SYSTEM CACHE TOOLCHAIN REGISTRY INSIDE
  unshare --mount --propagation private --pid --fork --kill-child "${BASH_SOURCE[0]}" --enter
  say "a bare $SUITE builds after hack/install-deps.sh"
}

main "$@"
