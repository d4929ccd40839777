#!/bin/sh
# The guest's only program: brings up the VF, runs the test, prints its result on the console, and keeps running.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
exec </dev/null >/dev/ttyS0 2>&1

for word in $(cat /proc/cmdline); do
    case $word in
    number=*) NUMBER=${word#*=} ;;
    esac
done
PEER=10.82.0.$((3 - NUMBER))
export NUMBER PEER

modprobe igbvf
ip addr add "10.82.0.$NUMBER/24" dev eth0
ip link set eth0 up
until [ "$(cat /sys/class/net/eth0/carrier 2>/dev/null)" = 1 ]; do
    sleep 1
done
# Start a new line, whatever the console printed before.
echo
if sh /test.sh; then
    echo "TEST PASSED"
else
    echo "TEST FAILED with status $?"
fi
while :; do
    sleep 1000
done
