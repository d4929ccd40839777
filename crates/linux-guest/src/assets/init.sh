#!/bin/sh
# The guest's first and only service: loads drivers for the devices it finds, as a distribution's udev would,
# then runs the commands that the host sends over the virtio port "softiov.control".
#
# From the host, one line each:   run ID SCRIPT. | kill ID | reboot | poweroff
# To the host, one line each:     ready BOOT-ID RELEASE . | done ID STATUS oHEX eHEX .
# In SCRIPT, a backslash is "\\" and a line feed "\n". Every line to the host begins after a line feed and ends in
# " .", so one cut short by a reboot cannot be mistaken for a whole one.
#
# An emulated processor takes 15 ms to start a program, and checks run thousands of commands. So a command starts no
# program but its shell and, if it prints something, hexdump.

export PATH=/bin HOME=/ TERM=dumb
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /run/jobs
mkfifo /run/turn
ln -s /proc/self/fd /dev/fd
echo 0 > /proc/sys/kernel/hung_task_timeout_secs 2>/dev/null
ip link set lo up

modprobe virtio_pci
modprobe virtio_console

# Drivers probe in the background: a card that never answers must not cost the control channel too.
if ! grep -q softiov.coldplug=off /proc/cmdline; then
    cat /sys/bus/pci/devices/*/modalias | xargs -n 1 modprobe -q 2>/dev/null &
    coldplug=$!
    waited=0
    while kill -0 $coldplug 2>/dev/null && [ $waited -lt 100 ]; do
        usleep 100000
        waited=$((waited + 1))
    done
fi

control=
while [ -z "$control" ]; do
    for port in /sys/class/virtio-ports/*; do
        if [ "$(cat $port/name 2>/dev/null)" = softiov.control ]; then
            control=/dev/${port##*/}
        fi
    done
    [ -n "$control" ] || usleep 20000
done
exec 3<>"$control" 4<>/run/turn

# There is one port and many jobs: the job that has read the line feed from the pipe may write.
lock() { read -r turn <&4; }
unlock() { echo >&4; }
hex() { [ ! -s "$1" ] || hexdump -v -e '/1 "%02x"' "$1"; }

job() {
    job=/run/jobs/$1
    setsid /bin/dash "$job.script" </dev/null >"$job.out" 2>"$job.err" 3>&- 4>&- &
    echo $! > "$job.session"
    wait $!
    status=$?
    lock
    { printf '\ndone %s %s o' "$1" $status; hex "$job.out"; printf ' e'; hex "$job.err"; printf ' .\n'; } >&3
    unlock
    : > "$job.over"
    [ $(($1 % 16)) -ne 0 ] || sweep
}

# Removes the files of the jobs that are over.
sweep() {
    set --
    for over in /run/jobs/*.over; do
        job=${over%.over}
        set -- "$@" "$job.script" "$job.out" "$job.err" "$job.session" "$over"
    done
    rm -f "$@"
}

printf '\nready %s %s .\n' "$(cat /proc/sys/kernel/random/boot_id)" "$(uname -r)" >&3
# The pipe is empty so far.
unlock

# Reading nothing means that the host has hung up: nobody will ever turn this machine off but itself.
while read -r verb id script <&3; do
    case $verb in
    run)
        printf %b "${script%.}" > "/run/jobs/$id.script"
        job "$id" &
        ;;
    kill) read -r session 2>/dev/null < "/run/jobs/$id.session" && kill -KILL "-$session" 2>/dev/null ;;
    reboot) reboot -f ;;
    poweroff) poweroff -f ;;
    esac
    # Collects the jobs that have ended.
    jobs >/dev/null
done
poweroff -f
