#!/bin/busybox sh
# The first process of the virtual machine of `scripts/test-gpu virgl`: Debian's root folder, which nothing is written to,
# and guest.sh in it.
B=/bin/busybox
$B mount -t proc proc /proc
$B mount -t sysfs sys /sys
$B mount -t devtmpfs dev /dev
for module in /modules/*; do $B insmod "$module"; done
share=trans=virtio,version=9p2000.L,msize=524288
$B mkdir /lower /upper /new
$B mount -t 9p -o ro,cache=loose,$share guest /lower
$B mount -t tmpfs tmpfs /upper
$B mkdir /upper/files /upper/work
$B mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work overlay /new
$B mkdir -p /new/share
$B mount -t 9p -o ro,$share share /new/share
for folder in proc sys dev; do $B mount --move /$folder /new/$folder; done
for folder in tmp run dev/shm; do $B mkdir -p /new/$folder && $B mount -t tmpfs tmpfs /new/$folder; done
$B ifconfig lo 127.0.0.1 up
exec $B switch_root /new /bin/sh /share/guest.sh
