#!/bin/sh
# Adds a test, and an init that runs it, to a guest's initramfs: a second archive, whose files override the first's.
#
#   guest-initramfs.sh INITRAMFS TEST OUT
#
# INITRAMFS needs a shell, mount, ip, modprobe, cat, sleep, the programs of TEST, and the module igbvf of the guest's
# kernel. Debian's mkinitramfs creates one if busybox is installed: see workflow.yml.
set -eu

initramfs=$1 test=$2 out=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$(dirname "$0")/guest-init.sh" "$work/init"
cp "$test" "$work/test.sh"
chmod 755 "$work/init"
cp "$initramfs" "$out"
(cd "$work" && printf 'init\ntest.sh\n' | cpio --quiet -o -H newc) >> "$out"
