#!/usr/bin/env bash
# Installs what building, running and testing Coxswain needs on Debian 12 and 13: Debian packages, a Rust toolchain,
# and newer kubectl and etcd beside the system's own. Safe to run again; it only adds what is missing.
#
# usage: hack/install-deps.sh [--check] [--prefix DIR] [--skip-rust] [--skip-tools] [--newer-containerd]
#   --check             only report what is missing; exit 1 if anything is
#   --prefix DIR        where the tools beside the system's own go (default: $COXSWAIN_PREFIX or /opt/coxswain)
#   --skip-rust         leave the Rust toolchain alone
#   --skip-tools        leave kubectl and etcd alone
#   --newer-containerd  also unpack the containerd of the next Debian release under the prefix (not installed)
#
# Tools end up in PREFIX/bin: kubectl-1.32, kubectl-1.36, etcd-3.4, etcd-3.5, etcdctl-3.5, and plain `kubectl`, `etcd`
# and `etcdctl` that point to the newest. They are Debian's own packages of other releases, unpacked and not installed,
# so the machine's package state stays that of its release.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PREFIX=${COXSWAIN_PREFIX:-/opt/coxswain}
CHECK=0 RUST=1 TOOLS=1 NEWER_CONTAINERD=0
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PATH="$HOME/.cargo/bin:$PATH:/usr/sbin:/sbin"

# What the machine itself needs, by package. iptables is what the CNI portmap plugin drives; busybox-static and
# bash-static go into the test images, binutils takes debug information out of them, and systemd (which need not run)
# verifies units.
PACKAGES=(
  ca-certificates curl gcc libc6-dev make protobuf-compiler libprotobuf-dev       # building
  containerd runc containernetworking-plugins                                    # running pods
  iproute2 iptables nftables conntrack socat ethtool util-linux procps mount     # what the node components call
  openssl jq busybox-static bash-static patchelf binutils systemd debootstrap git # tests and images
  python3-venv                                                                   # clients in other languages
)

# NAME-MINOR | Debian release that has it | package | file inside the package
TOOL_TABLE=(
  "kubectl-1.32|trixie|kubectl|usr/bin/kubectl"
  "kubectl-1.36|sid|kubectl|usr/bin/kubectl"
  "etcd-3.4|bookworm|etcd-server|usr/bin/etcd"
  "etcd-3.5|trixie|etcd-server|usr/bin/etcd"
  "etcdctl-3.5|trixie|etcd-client|usr/bin/etcdctl"
)

say() { printf '==> %s\n' "$*"; }
warn() { printf 'warning: %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

parse_arguments() {
  while [ $# -gt 0 ]; do
    case $1 in
      --check) CHECK=1 ;;
      --prefix) [ $# -ge 2 ] || die "--prefix needs a directory"; PREFIX=$2; shift ;;
      --skip-rust) RUST=0 ;;
      --skip-tools) TOOLS=0 ;;
      --newer-containerd) NEWER_CONTAINERD=1 ;;
      -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 0 ;;
      *) die "unknown argument $1 (see --help)" ;;
    esac
    shift
  done
}

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing_packages() {
  local package
  for package in "${PACKAGES[@]}"; do is_installed "$package" || printf '%s\n' "$package"; done
  # Packages of others bring it along with Node, and conflict with Debian's.
  command -v npm >/dev/null || printf 'npm\n'
}

missing_tools() {
  local row name
  for row in "${TOOL_TABLE[@]}"; do
    name=${row%%|*}
    tool_runs "$PREFIX/bin/$name" || printf '%s\n' "$name"
  done
}

# A tool counts only if it starts: a binary of a newer release may need a newer C library.
tool_runs() {
  [ -x "$1" ] || return 1
  case ${1##*/} in
    kubectl-*) "$1" version --client >/dev/null 2>&1 ;;
    etcdctl-*) ETCDCTL_API=3 "$1" version >/dev/null 2>&1 ;;
    *) "$1" --version >/dev/null 2>&1 ;;
  esac
}

wanted_rust() { sed -n 's/^channel *= *"\([0-9.]*\)".*/\1/p' "$ROOT/rust-toolchain.toml"; }

# True if cargo exists and is at least the version that the repository pins. Asking is not to install it: rustup would.
rust_is_new_enough() {
  local have
  have=$(cd "$ROOT" && RUSTUP_AUTO_INSTALL=0 cargo --version 2>/dev/null | awk '{print $2}') || return 1
  [ -n "$have" ] && [ "$(printf '%s\n%s\n' "$(wanted_rust)" "$have" | sort -V | head -n 1)" = "$(wanted_rust)" ]
}

check() {
  local missing=0 item
  while read -r item; do missing=1; echo "missing package: $item"; done < <(missing_packages)
  if [ $RUST = 1 ] && ! rust_is_new_enough; then missing=1; echo "missing: Rust $(wanted_rust) or newer"; fi
  if [ $TOOLS = 1 ]; then
    while read -r item; do missing=1; echo "missing tool: $PREFIX/bin/$item"; done < <(missing_tools)
  fi
  if [ $missing = 0 ]; then echo "nothing is missing"; fi
  return $missing
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  if [ ${#missing[@]} = 0 ]; then say "packages: all there"; return; fi
  say "packages: installing ${missing[*]}"
  apt-get -qq update || die "apt-get update failed: check the machine's package sources and its network"
  # Without recommends: containerd's would pull in tools that nothing here uses.
  apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 install "${missing[@]}" >/dev/null ||
    die "apt-get install failed for: ${missing[*]}"
}

# The installer that rustup publishes, checked against the sum beside it. Both variables are rustup's own.
fetch_rustup() {
  local root=${RUSTUP_UPDATE_ROOT:-${RUSTUP_DIST_SERVER:-https://static.rust-lang.org}/rustup}
  local url dir
  url=$root/dist/$(uname -m)-unknown-linux-gnu/rustup-init
  dir=$(mktemp -d)
  say "rust: fetching rustup"
  (cd "$dir" && curl -fsSL -o rustup-init "$url" && curl -fsSL -o sum "$url.sha256") ||
    die "cannot fetch $url: set RUSTUP_UPDATE_ROOT, or install Rust $(wanted_rust) by other means and run this again"
  [ "$(awk '{print $1}' "$dir/sum")" = "$(sha256sum "$dir/rustup-init" | awk '{print $1}')" ] ||
    die "$url does not have the checksum that is published beside it"
  chmod +x "$dir/rustup-init"
  "$dir/rustup-init" -y --quiet --no-modify-path --profile minimal --default-toolchain none >/dev/null 2>&1 ||
    die "rustup's installer failed; run $dir/rustup-init by hand to see why"
  rm -rf "$dir"
}

# Debian 13 has a rustup package; Debian 12 has none.
install_rust() {
  local version
  version=$(wanted_rust)
  if rust_is_new_enough; then say "rust: $(cd "$ROOT" && cargo --version)"; return; fi
  if ! command -v rustup >/dev/null; then
    if [ -n "$(apt-cache madison rustup 2>/dev/null)" ]; then
      say "rust: installing Debian's rustup"
      apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 install rustup >/dev/null || die "cannot install rustup"
    else
      fetch_rustup
    fi
  fi
  say "rust: installing toolchain $version"
  rustup toolchain install "$version" --profile minimal --component rustfmt --component clippy >/dev/null ||
    reuse_toolchain "$version" || die "rustup could not install Rust $version"
}

# Where there is no way to rustup's server: the same version may be there as `stable`. The repository asks for it by its
# number, which `rustup toolchain link` keeps for itself.
reuse_toolchain() {
  local version=$1 home=${RUSTUP_HOME:-$HOME/.rustup} toolchain
  for toolchain in "$home"/toolchains/*/; do
    [[ $("$toolchain/bin/rustc" --version 2>/dev/null) = "rustc $version "* ]] || continue
    say "rust: ${toolchain%/} is version $version"
    ln -sfn "${toolchain%/}" "$home/toolchains/$version-$("$toolchain/bin/rustc" -vV | sed -n 's/^host: //p')"
    return
  done
  return 1
}

# The mirror of Debian itself that this machine already uses, whatever the format of its source lists.
debian_mirror() {
  apt-get indextargets --format '$(LABEL)|$(REPO_URI)' 'Created-By: Packages' | sed -n 's/^Debian|//p' | head -n 1
}

APT_DIR=""
# apt-get/apt-cache with lists, cache and sources of their own: the machine's configuration is read, never changed.
isolated() {
  local suite=$1 command=$2; shift 2
  local dir=$APT_DIR/$suite
  "$command" -q -o APT::Sandbox::User=root -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=- \
    -o Dir::Etc::preferences=- -o Dir::Etc::preferencesparts=- -o Dir::State::Lists="$dir/lists" \
    -o Dir::Cache="$dir/cache" -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false "$@"
}

prepare_suite() {
  local suite=$1 dir=$APT_DIR/$1 mirror
  [ ! -e "$dir/ready" ] || return 0
  mirror=$(debian_mirror)
  [ -n "$mirror" ] || die "cannot tell the Debian mirror from this machine's package sources; run apt-get update first"
  mkdir -p "$dir"/lists/partial "$dir"/cache/archives/partial
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$dir/sources.list"
  say "tools: reading the package lists of $suite"
  isolated "$suite" apt-get update >"$dir/update.log" 2>&1 || { cat "$dir/update.log" >&2; return 1; }
  touch "$dir/ready"
}

# unpack SUITE PACKAGE -> PREFIX/pkgs/SUITE/PACKAGE
unpack() {
  local suite=$1 package=$2 target=$PREFIX/pkgs/$1/$2 version debs
  prepare_suite "$suite" || return 1
  # The version is named because an installed, higher one from elsewhere would win otherwise.
  version=$(isolated "$suite" apt-cache madison "$package" | awk -F'|' 'NR == 1 {gsub(/ /, "", $2); print $2}')
  [ -n "$version" ] || { warn "$suite has no package $package"; return 1; }
  debs=$APT_DIR/$suite/debs/$package
  rm -rf "$debs" "$target"; mkdir -p "$debs" "$target"
  say "tools: fetching $package $version from $suite"
  (cd "$debs" && isolated "$suite" apt-get download "$package=$version" >/dev/null 2>"$debs/log") ||
    { cat "$debs/log" >&2; return 1; }
  dpkg -x "$debs"/*.deb "$target"
}

install_tool() {
  local name suite package file
  IFS='|' read -r name suite package file <<<"$1"
  unpack "$suite" "$package" || { warn "$name: not installed"; return 0; }
  mkdir -p "$PREFIX/bin"
  ln -sfn "../pkgs/$suite/$package/$file" "$PREFIX/bin/$name"
  tool_runs "$PREFIX/bin/$name" || warn "$name: unpacked but does not start on this machine"
}

install_tools() {
  local row name plain
  for row in "${TOOL_TABLE[@]}"; do
    name=${row%%|*}
    if tool_runs "$PREFIX/bin/$name"; then say "tools: $name is there"; else install_tool "$row"; fi
  done
  for plain in kubectl-1.36 etcd-3.5 etcdctl-3.5; do
    [ ! -x "$PREFIX/bin/$plain" ] || ln -sfn "$plain" "$PREFIX/bin/${plain%-*}"
  done
}

install_newer_containerd() {
  if [ -x "$PREFIX/pkgs/trixie/containerd/usr/bin/containerd" ]; then say "tools: newer containerd is there"; return; fi
  unpack trixie containerd || die "cannot fetch containerd from trixie"
  say "tools: newer containerd in $PREFIX/pkgs/trixie/containerd/usr/bin"
}

main() {
  parse_arguments "$@"
  [ -r /etc/debian_version ] || die "this script knows Debian only; install the packages it names by other means"
  if [ $CHECK = 1 ]; then check; return; fi
  [ "$(id -u)" = 0 ] || die "must run as root (try --check to see what is missing)"
  APT_DIR=$(mktemp -d); trap 'rm -rf "$APT_DIR"' EXIT
  install_packages
  # In a subshell: what fails here shall not keep the rest from being installed; the check at the end tells.
  if [ $RUST = 1 ]; then (install_rust) || warn "Rust: not installed"; fi
  if [ $TOOLS = 1 ]; then install_tools; fi
  if [ $NEWER_CONTAINERD = 1 ]; then install_newer_containerd; fi
  say "tools are in $PREFIX/bin"
  check || die "some things are still missing (see above)"
}

main "$@"
