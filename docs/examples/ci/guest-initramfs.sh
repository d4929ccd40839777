#!/bin/sh
# Puts a test into a guest's initramfs, and an init that runs it: an archive behind another, whose files win.
#
#   guest-initramfs.sh INITRAMFS TEST OUT
#
# INITRAMFS has a shell, mount, ip, modprobe, cat, sleep, what TEST needs, and the module igbvf of the guest's kernel.
# Debian's mkinitramfs makes one, if busybox is installed: see workflow.yml.
set -eu

initramfs=$1 test=$2 out=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$(dirname "$0")/guest-init.sh" "$work/init"
cp "$test" "$work/test.sh"
chmod 755 "$work/init"
cp "$initramfs" "$out"
(cd "$work" && printf 'init\ntest.sh\n' | cpio --quiet -o -H newc) >> "$out"
