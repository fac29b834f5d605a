#!/bin/busybox sh
# The first process of the virtual machine of `scripts/test-gpu memory`.
export PATH=/bin HOME=/tmp TMPDIR=/tmp LC_ALL=C.UTF-8 WAYFERRY=/bin/wayferry RUST_BACKTRACE=1
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
ifconfig lo 127.0.0.1 up
tests --test-threads 1 --skip gpu_ 2>&1
echo "test-gpu: status $?"
poweroff -f
