#!/bin/sh
# Boots two virtual machines, each on a VF of the running host, and runs a test in both at once. Succeeds if both pass.
#
#   two-guests.sh KERNEL INITRAMFS TEST
#
# KERNEL and INITRAMFS are a guest's, see guest-initramfs.sh; TEST is a shell script, see ping.sh. Environment:
#   QEMU      qemu-system-x86_64 of version 10.1 or later; default: the one in PATH
#   PORT      the port whose first two VFs the guests use; default pf0
#   PATIENCE  timeout of the test with both boots, in seconds; default 300
set -eu

kernel=$1 initramfs=$2 test=$3
qemu=${QEMU:-qemu-system-x86_64} port=${PORT:-pf0} patience=${PATIENCE:-300}
work=$(mktemp -d)
machines=

end() {
    for machine in $machines; do
        kill "$machine" 2>/dev/null || true
    done
    # Include the output of ending machines in this run.
    wait
    rm -rf "$work"
}
trap end EXIT

sh "$(dirname "$0")/guest-initramfs.sh" "$initramfs" "$test" "$work/initramfs"

for number in 1 2; do
    # QEMU's arguments for the VF, quoted for a shell, on several lines.
    card=$(softiov qemu-args "${port}vf$((number - 1))" --memory 256M | tr -d '\\\n')
    eval "exec $qemu -nodefaults -display none -no-reboot -accel kvm -accel tcg -cpu max $card" \
        '-kernel "$kernel" -initrd "$work/initramfs" -serial "file:$work/console$number"' \
        '-append "console=ttyS0 quiet panic=-1 number=$number"' &
    machines="$machines $!"
done

# A guest keeps running after its test: the other may still need it.
verdict() { grep -a '^TEST ' "$work/console$1" 2>/dev/null; }
waited=0
until verdict 1 >/dev/null && verdict 2 >/dev/null; do
    for machine in $machines; do
        kill -0 "$machine" 2>/dev/null || waited=$patience
    done
    [ "$waited" -lt "$patience" ] || break
    sleep 1
    waited=$((waited + 1))
done

failed=0
for number in 1 2; do
    sed "s/^/guest $number: /" "$work/console$number" || true
    verdict "$number" | grep -q '^TEST PASSED' || failed=1
done
[ "$failed" = 0 ] || softiov doctor --qemu "$qemu" || true
exit "$failed"
