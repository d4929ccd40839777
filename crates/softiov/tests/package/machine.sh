#!/bin/sh
# In new namespaces: makes a Debian of a root that stays as it is and a layer of memory above it, with some folders of this
# machine under their own names, and becomes its systemd.
#
#   machine.sh ROOT FOLDER...
set -e

root=$1
shift
mount --make-rprivate /
# Before the layer covers what these may lie in.
mount -t tmpfs layer /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o "lowerdir=$root,upperdir=/mnt/upper,workdir=/mnt/work" overlay /mnt/root
cd /mnt/root

mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs dev dev
mkdir dev/net dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
for device in null zero full random urandom tty net/tun; do
    if [ -e "/dev/$device" ]; then
        touch "dev/$device"
        mount --bind "/dev/$device" "dev/$device"
    fi
done
for folder; do
    mkdir -p ".$folder"
    mount --bind "$folder" ".$folder"
    # Users of this machine may pass through to them.
    while [ "$folder" != / ]; do
        folder=$(dirname "$folder")
        chmod a+x ".$folder"
    done
done
# Manual pages were left out of the root, not of what is installed now.
rm -f etc/dpkg/dpkg.cfg.d/99mmdebstrap

mkdir old
pivot_root . old
cd /
umount -l /old
rmdir /old
exec env -i container=softiov PATH=/usr/sbin:/usr/bin /usr/lib/systemd/systemd --system --unit=basic.target
