#!/usr/bin/env bash
# Runs a command beside a containerd of its own, with the test images in it: COXSWAIN_CRI_SOCKET tells the command where
# it listens. What it needs is below a directory of its own and goes when the command ends; the machine's containerd is
# left alone. Where it cannot be (no root, nothing installed) it says so, and the command runs without.
#
# usage: hack/with-containerd.sh [--must] COMMAND [ARGUMENT...]
#   --must   fail where there can be no containerd, instead of running without
# environment: COXSWAIN_CRI_SOCKET (a runtime that is there already is used), COXSWAIN_IMAGES (the images' directory)
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH="$PATH:/usr/sbin:/sbin:$HOME/.cargo/bin"
MUST=0
[ "${1:-}" != --must ] || { MUST=1; shift; }
[ $# -gt 0 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" >&2; exit 2; }

say() { printf '==> %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }
without() {
  [ "$MUST" = 0 ] || die "no container runtime for the tests: $1"
  say "skipped: tests on a real container runtime ($1)"
  exec "${COMMAND[@]}"
}

COMMAND=("$@")
[ -z "${COXSWAIN_CRI_SOCKET:-}" ] || exec "${COMMAND[@]}"
[ "$(id -u)" = 0 ] || without "not root"
unshare -m true 2>/dev/null || without "this machine does not allow to mount"
for program in containerd ctr runc ip; do
  command -v "$program" >/dev/null || without "$program is missing: make deps"
done
[ -x /usr/lib/cni/bridge ] || without "the CNI plugins are missing: make deps"
IMAGES=${COXSWAIN_IMAGES:-${CARGO_TARGET_DIR:-$ROOT/target}/images}
[ -e "$IMAGES/busybox.tar" ] && [ -e "$IMAGES/pause.tar" ] || without "no images in $IMAGES: hack/images.sh build"

# Short, because a socket's path may have no more than 107 bytes.
DIR=$(mktemp -d /run/coxswain-cri.XXXXXX)
SOCKET=$DIR/c.sock
# An interface's name may have no more than 15 bytes.
BRIDGE=cri-${DIR##*.}
NET=10.$((RANDOM % 128 + 64)).$((RANDOM % 256)).0/24
PID=

ctr_() { ctr -a "$SOCKET" -n k8s.io "$@"; }

take_down() {
  local status=$? task
  trap - EXIT
  if [ -n "$PID" ]; then
    for task in $(ctr_ tasks ls -q 2>/dev/null); do ctr_ tasks rm -f "$task" >/dev/null 2>&1 || true; done
    kill "$PID" 2>/dev/null || true
    wait "$PID" 2>/dev/null || true
  fi
  { grep -o " $DIR/[^ ]*" /proc/mounts || true; } | sort -r | while read -r mount; do umount -l "$mount" || true; done
  ip link del "$BRIDGE" 2>/dev/null || true
  rm -rf "$DIR"
  exit "$status"
}
trap take_down EXIT
trap 'exit 130' INT TERM

mkdir -p "$DIR"/{root,state,opt,net.d,ipam,certs.d}
cat >"$DIR/net.d/10-bridge.conflist" <<X
{"cniVersion": "0.4.0", "name": "$BRIDGE", "plugins": [
 {"type": "bridge", "bridge": "$BRIDGE", "isGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "dataDir": "$DIR/ipam", "ranges": [[{"subnet": "$NET"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
 {"type": "portmap", "capabilities": {"portMappings": true}}
]}
X
# Scores of the out-of-memory killer cannot go down everywhere, nor is there a controller for huge pages.
cat >"$DIR/config.toml" <<X
version = 2
root = "$DIR/root"
state = "$DIR/state"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
  address = "$SOCKET"
[ttrpc]
  address = "$SOCKET.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "$DIR/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.10"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  netns_mounts_under_state_dir = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$DIR/net.d"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "$DIR/certs.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = "$DIR/runc"
      SystemdCgroup = false
X
setsid containerd --config "$DIR/config.toml" >"$DIR/log" 2>&1 </dev/null &
PID=$!
for _ in $(seq 200); do
  kill -0 "$PID" 2>/dev/null || break
  ctr_ version >/dev/null 2>&1 && READY=1 && break
  sleep 0.1
done
[ -n "${READY:-}" ] || { tail -20 "$DIR/log" >&2; die "containerd did not start"; }
COXSWAIN_IMAGES=$IMAGES "$ROOT/hack/images.sh" import "$SOCKET" >/dev/null
say "tests on a real container runtime use $(containerd --version | cut -d' ' -f3) at $SOCKET"
status=0
COXSWAIN_CRI_SOCKET="unix://$SOCKET" "${COMMAND[@]}" || status=$?
exit "$status"
