#!/bin/sh
# Lays out the small roots: static.sh ROOT OUT. ROOT holds Debian's bash-static
# and busybox-static; OUT gets one directory for each image:
#   sandbox-small    bash and busybox's applets
#   sandbox-busybox  busybox's applets, so `sh` but no bash
#   sandbox-noshell  nothing that runs
# The Dockerfile runs it in a stage (ROOT is /), hack/image from outside the root.
set -eu
root=${1%/}
out=$2

bare() {
	mkdir -p "$1/etc"
	echo 'sandbox:x:1000:1000:sandbox:/workspace:'"$2" >"$1/etc/passwd"
	echo 'sandbox:x:1000:' >"$1/etc/group"
	install -d -m 1777 "$1/tmp"
	install -d -m 0755 -o 1000 -g 1000 "$1/workspace"
}

licence() {
	install -D -m 0644 "$root/usr/share/doc/$2/copyright" "$1/usr/share/doc/$2/copyright"
}

with_busybox() {
	install -D -m 0755 "$root/bin/busybox" "$1/bin/busybox"
	licence "$1" busybox-static
	"$root/bin/busybox" --list | while read -r applet; do
		[ "$applet" = busybox ] || ln -s busybox "$1/bin/$applet"
	done
	# `#!/usr/bin/env bash` is how many scripts start.
	mkdir -p "$1/usr/bin"
	ln -s ../../bin/env "$1/usr/bin/env"
}

umask 022
bare "$out/sandbox-small" /bin/bash
with_busybox "$out/sandbox-small"
install -m 0755 "$root/bin/bash-static" "$out/sandbox-small/bin/bash"
licence "$out/sandbox-small" bash-static

bare "$out/sandbox-busybox" /bin/sh
with_busybox "$out/sandbox-busybox"

bare "$out/sandbox-noshell" /nonexistent
