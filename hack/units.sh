#!/usr/bin/env bash
# Boots a Debian with systemd in a container, has `coxswain units` write its units there, starts them, and looks whether
# the API server, the kubelet and the proxy are well, whether the node is ready, and whether nothing had to be started
# twice. Needs root, systemd-nspawn and, the first time, debootstrap and a Debian mirror.
#
# usage: hack/units.sh [BIN_DIR [IMAGES_DIR]]
#   BIN_DIR             where the binaries are (default: target/debug)
#   IMAGES_DIR          where the images are that nodes start with (default: target/images); with that of the DNS server
#                       among them, its pods have to run and to be reached by their Service
#   COXSWAIN_TREE       the Debian tree; made if it is not there, never changed (default: target/units-tree)
#   COXSWAIN_UNITS_DEADLINE  seconds for all of it (default: 300)
#   COXSWAIN_SUITE      its release (default: the machine's own)
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=${CARGO_TARGET_DIR:-$ROOT/target}
BIN=$(realpath "${1:-$BUILD/debug}")
IMAGES=$(realpath -m "${2:-$BUILD/images}")
TREE=${COXSWAIN_TREE:-$BUILD/units-tree}
SUITE=${COXSWAIN_SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
PACKAGES=systemd,systemd-sysv,dbus,containerd,runc,nftables,conntrack,iproute2,iptables,containernetworking-plugins,mount,procps,curl,jq
# From the boot to a ready node; a busy machine takes a minute.
DEADLINE_SECONDS=${COXSWAIN_UNITS_DEADLINE:-300}

say() { printf '==> %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || die "needs root"
command -v systemd-nspawn >/dev/null || die "systemd-nspawn is missing: install systemd-container"
for name in coxswain kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy; do
  [ -x "$BIN/$name" ] || die "$BIN/$name is not there: build it first"
done
if [ ! -e "$TREE/sbin/init" ]; then
  command -v debootstrap >/dev/null || die "debootstrap is missing"
  say "unpacking $SUITE into $TREE"
  debootstrap --variant=minbase --include="$PACKAGES" "$SUITE" "$TREE" >"$BUILD/units-tree.log" 2>&1 ||
    die "debootstrap failed: see $BUILD/units-tree.log"
fi

JOB=$(mktemp -d)
cat >"$JOB/job.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/bash -c 'timeout "$(cat /job/deadline)" /bin/bash /job/inside; echo $? >/job/result; systemctl poweroff --force'
StandardOutput=file:/job/out
StandardError=file:/job/out
TimeoutStartSec=0
UNIT
echo "$DEADLINE_SECONDS" >"$JOB/deadline"
cat >"$JOB/inside" <<'INSIDE'
set -u
BIN=/opt/coxswain/bin LIB=/var/lib/coxswain
UNITS="coxswain-prepare coxswain-containerd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy"

for group in $(findmnt -rn -t cgroup -o TARGET | grep '^/job/groups/'); do
  # In its place, not above it: runc takes the first mount of a hierarchy for the one.
  umount "${group#/job/groups}" && mount --bind "$group" "${group#/job/groups}" && umount "$group"
done
$BIN/coxswain units --root=$LIB --out=/etc/systemd/system --bin-dir=$BIN --images-dir=/opt/coxswain/images || exit 1
systemctl daemon-reload
# All at once, in the order that the units say.
systemctl enable --quiet $UNITS coxswain-addons
systemctl start --no-block $UNITS coxswain-addons

data() { sed -n "s/^ *$1: //p" $LIB/etc/kubernetes/super-admin.conf | base64 -d >/tmp/$2; }
data client-certificate-data crt; data client-key-data key; data certificate-authority-data ca
SERVER=$(sed -n 's/^ *server: //p' $LIB/etc/kubernetes/super-admin.conf)
api() { curl -sS --max-time 5 --cert /tmp/crt --key /tmp/key --cacert /tmp/ca "$SERVER$1"; }
# Ready in the opinion of the kubelet that runs now.
STARTED=$(date +%s)
ready() {
  api /api/v1/nodes/node-1 | jq -e --argjson started "$STARTED" '.status.conditions[] |
    select(.type == "Ready" and .status == "True" and (.lastHeartbeatTime | fromdate) >= $started)'
}

dns() {
  api /apis/apps/v1/namespaces/kube-system/deployments/cluster-dns | jq -e '.status.readyReplicas == 2'
}
shown() {
  curl -sS --max-time 5 http://127.0.0.1:10249/configz | jq -e '."kubeproxy.config.k8s.io".mode == "nftables"'
}

await() { # WHAT COMMAND...
  local what=$1; shift
  until "$@" >/tmp/answer 2>&1; do
    if [ "$SECONDS" -gt "$END" ]; then echo "no $what: $(tail -c 600 /tmp/answer)"; return 1; fi
    sleep 1
  done
  echo "$what"
}
# The last part of the deadline is for saying what went wrong.
END=$(($(cat /job/deadline) - 40))
status=0
await "API server is ready" api /readyz &&
  await "kubelet is well" curl -sSf --max-time 5 http://127.0.0.1:10248/healthz &&
  await "node is ready" ready &&
  await "proxy is well" curl -sSf --max-time 5 http://127.0.0.1:10256/healthz &&
  await "proxy has written its table" nft list chain ip kube-proxy services &&
  await "proxy shows its configuration" shown &&
  await "addons are applied" systemctl is-active coxswain-addons || status=1
if [ $status = 0 ] && [ -e /opt/coxswain/images/cluster-dns.tar ]; then
  # A machine has a way to everywhere; without one packets for a Service end before the proxy's rules see them.
  ip route add default dev coxswain-fab
  await "DNS server runs twice" dns && await "DNS server is reached by its Service" \
    curl -sSf --max-time 5 -o /dev/null http://10.96.0.10:9153/metrics || status=1
  [ $status = 0 ] || api /api/v1/namespaces/kube-system/events | jq -r '.items[] | "\(.reason): \(.message)"' | sort | uniq -c
fi
for unit in $UNITS; do
  state=$(systemctl show -p ActiveState --value $unit) starts=$(systemctl show -p NRestarts --value $unit)
  echo "$unit: $state, restarted $starts times"
  if [ "$state" != active ] || [ "$starts" != 0 ]; then status=1; journalctl -u $unit -n 25 --no-pager -o cat; fi
done
# The agents stop and start again as systemd means them to.
if [ $status = 0 ]; then
  systemctl restart kubelet kube-proxy
  await "kubelet is well after a restart" curl -sSf --max-time 5 http://127.0.0.1:10248/healthz &&
    await "proxy is well after a restart" curl -sSf --max-time 5 http://127.0.0.1:10256/healthz || status=1
fi
exit $status
INSIDE

clean_up() {
  # nspawn leaves empty groups behind, too.
  for group in /sys/fs/cgroup/*/"$GROUPS_DIR" /sys/fs/cgroup/{systemd,unified}/{payload,supervisor}; do
    [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
  rm -rf "$JOB"
}
trap clean_up EXIT

# The first version of control groups is there read-only, but for systemd's own: the container gets a part of each.
GROUPS_DIR=$(basename "$JOB") BINDS=()
mkdir "$JOB/groups"
if [ ! -e /sys/fs/cgroup/cgroup.controllers ]; then
  for group in $(findmnt -rn -t cgroup -o TARGET | grep -v '/systemd$'); do
    mkdir "$group/$GROUPS_DIR"
    for file in cpuset.cpus cpuset.mems; do
      [ ! -e "$group/$file" ] || cat "$group/$file" >"$group/$GROUPS_DIR/$file"
    done
    mkdir -p "$JOB/groups$group"
    BINDS+=("--bind=$group/$GROUPS_DIR:/job/groups$group")
  done
fi
# A network of its own, and nothing of what runs in it stays: changes go to memory, but for what containerd and the API
# server keep, as an overlay cannot be the ground of another.
mkdir "$JOB/lib"
mkdir -p "$IMAGES"
boot() {
  rm -f "$JOB/out" "$JOB/result"
  timeout -k 10 $((DEADLINE_SECONDS + 60)) systemd-nspawn -q -D "$TREE" --volatile=overlay --register=no --keep-unit \
    --private-network -E SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1 --system-call-filter="@keyring bpf" --bind="$JOB:/job" --bind="$JOB/lib:/var/lib/coxswain" \
    --bind-ro="$BIN:/opt/coxswain/bin" --bind-ro="$IMAGES:/opt/coxswain/images" --bind-ro="$JOB/job.service:/etc/systemd/system/job.service" "${BINDS[@]}" \
    --console=pipe -b -- systemd.unit=multi-user.target systemd.wants=job.service </dev/null >"$JOB/console" 2>&1 || true
  cat "$JOB/out" 2>/dev/null || tail -20 "$JOB/console"
  [ "$(cat "$JOB/result" 2>/dev/null)" = 0 ] || die "the units do not work as they should"
}

say "booting $TREE"
boot
say "booting it again, with the data that the cluster has by now"
boot
say "all units work"
