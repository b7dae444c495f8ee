#!/usr/bin/env bash
# Renews bins/kubelet/hot-code.txt: which functions a kubelet with 90 pods runs while nothing happens. `make build` lays them
# together in the file, so that the memory of an idle node is not the whole of its code. To be called when `make build` says
# that too few of them are there any more, or `make bench-up` that the kubelet takes too much memory (as root; needs valgrind).
#
# usage: hack/hot-code.sh BIN_DIR IMAGES_DIR
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ $# -eq 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
BIN=$(realpath "$1")
IMAGES=$(realpath "$2")
LIST=bins/kubelet/hot-code.txt
# Longer than anything waits that a kubelet does regularly, but for what it tells every five minutes that has not changed.
WATCHED_SECONDS=90
# Debian's valgrind is a shell script around the program, which would lose the name.
VALGRIND=$(command -v valgrind.bin || command -v valgrind) || { echo "error: valgrind is not there (apt-get install valgrind)" >&2; exit 1; }

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
mkdir "$WORK/bin"
ln -s "$BIN"/* "$WORK/bin/"
rm "$WORK/bin/kubelet"
cat >"$WORK/bin/kubelet" <<WRAPPER
#!/bin/bash
# By its own name, by which the benchmark finds the process.
exec -a "\$0" $VALGRIND --tool=callgrind --instr-atstart=no --demangle=no --log-file=$WORK/log \\
  --callgrind-out-file=$WORK/record $BIN/kubelet "\$@"
WRAPPER
chmod +x "$WORK/bin/kubelet"

# Counting begins when the pods run, and what has run is written down while the benchmark looks at the idle kubelet.
"$BIN/bench-up" --bin-dir="$WORK/bin" --images-dir="$IMAGES" --rounds=1 --pods=90 | while read -r line; do
  echo "$line"
  case $line in
    *"dense-round "*)
      kubelet=$(pgrep -f "^$WORK/bin/kubelet ")
      vgdb --pid="$kubelet" instrumentation on >/dev/null
      { sleep "$WATCHED_SECONDS"; vgdb --pid="$kubelet" dump >/dev/null; } &
      ;;
  esac
done
[ -s "$WORK/record.1" ] || { echo "error: valgrind wrote nothing down" >&2; exit 1; }
cargo xtask hot-code record <"$WORK/record.1" >"$LIST"
echo "==> $LIST: $(wc -l <"$LIST") functions"
