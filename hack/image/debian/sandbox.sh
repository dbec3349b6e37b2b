#!/bin/sh
# Finishes the Debian root of the image `sandbox`: sandbox.sh ROOT.
# The Dockerfile runs it in the stage (ROOT is /), hack/image from outside the
# root, so both end with the same files.
set -eu
root=${1%/}

echo 'sandbox:x:1000:1000:sandbox:/workspace:/bin/bash' >>"$root/etc/passwd"
echo 'sandbox:x:1000:' >>"$root/etc/group"
install -d -m 0755 -o 1000 -g 1000 "$root/workspace"

# /workspace is a volume that belongs to root:1000 in a pod, and git refuses a
# repository below a directory of another user.
printf '[safe]\n\tdirectory = *\n' >"$root/etc/gitconfig"

# Pods run with no_new_privs: set-uid programs can't work, so they needn't tempt.
find "$root/" -xdev -type f -perm /6000 -exec chmod a-s {} +

rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root"/var/cache/debconf/*-old \
	"$root"/var/cache/ldconfig/* "$root"/var/log/* "$root"/usr/share/info/* \
	"$root"/usr/share/gitweb "$root"/etc/passwd- "$root"/etc/group- "$root"/etc/shadow- "$root"/etc/gshadow-
