#!/bin/sh
# The second process of the virtual machine of `scripts/test-gpu virgl`.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp TMPDIR=/tmp LC_ALL=C.UTF-8 WAYFERRY=/share/wayferry RUST_BACKTRACE=1
modprobe virtio-gpu
/share/tests --test-threads 1 --nocapture gpu_ 2>&1
echo "test-gpu: status $?"
sync
echo o >/proc/sysrq-trigger
while :; do :; done
