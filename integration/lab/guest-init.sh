#!/bin/busybox sh
# Process 1 of a lab guest. Once a second it says on the console how long it has run, which boot this is, and whether
# a piece of its memory still holds what was written there: a guest that was restarted or damaged cannot hide it.
/bin/busybox mkdir -p /proc /dev /sys /tmp /var/run /var/log
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
[ -e /dev/null ] || /bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox --install -s /bin
export PATH=/bin
exec </dev/console >/dev/console 2>&1

boot=$(cut -c1-8 /proc/sys/kernel/random/boot_id)
{ echo "$boot" && head -c 128k /bin/busybox; } >/tmp/pattern
sum=$(md5sum </tmp/pattern)

devices() {
	for module in /modules/*.ko; do
		[ -e "$module" ] && insmod "$module" 2>/dev/null
	done
	acpid # runs what lies in /etc/acpi when the power button is pressed
	touch /tmp/hears
}
devices &

# What has QEMU's guest agent with it runs that, once the channel to it is there, and mounts its first disk, which gets a file system if it
# has none: that is what the agent freezes. A number in a file of it grows all the time.
agent() {
	while [ ! -e /dev/vport0p1 ] && [ ! -e /dev/vport1p1 ]; do sleep 0.1; done
	while [ ! -b /dev/vda ]; do sleep 0.1; done
	mkdir -p /mnt /var/lib
	mount -t ext4 /dev/vda /mnt 2>/dev/null || { mke2fs /dev/vda >/dev/null 2>&1 && mount -t ext4 /dev/vda /mnt; }
	qemu-ga -m virtio-serial -p /dev/vport*p1 -t /var/run -l /var/log/qemu-ga.log &
	written=0
	while :; do
		written=$((written + 1))
		echo $written >/mnt/number
		sync
		echo "written $written"
		sleep 0.2
	done
}
[ ! -e /bin/qemu-ga ] || agent &

# lab.dirty=N on the kernel's command line rewrites N MiB of memory over and over.
for word in $(cat /proc/cmdline); do
	case $word in
	lab.dirty=*)
		size=${word#lab.dirty=}
		while :; do
			at=0
			while [ $at -lt "$size" ]; do
				dd if=/bin/busybox of="/tmp/dirty$at" bs=1M count=1 2>/dev/null
				at=$((at + 1))
			done
		done &
		;;
	esac
done

# lab.disk on it: the guest has booted from the disk that disk.go lays out, and tells how that fares. One part of it gets
# random data once and is then only read; another one is written anew all the time; and behind them stands a number that
# grows by one a turn, over all its boots.
number() {
	dd if=/dev/vda bs=4096 skip=8192 count=1 iflag=direct 2>/dev/null | tr -dc 0-9
}
still() {
	dd if=/dev/vda bs=1M skip=24 count=4 iflag=direct 2>/dev/null
}
live_on_disk() {
	while [ ! -b /dev/vda ]; do sleep 0.1; done
	if [ "$(still | head -c 5)" != still ]; then
		{ echo still && head -c 4194298 /dev/urandom; } >/tmp/still
		dd if=/tmp/still of=/dev/vda bs=1M seek=24 oflag=direct conv=fsync 2>/dev/null
		rm /tmp/still
	fi
	writes=0
	found=$(number)
	found=${found:-0}
	number=$found
	while :; do
		at=$((28 + writes % 4))
		writes=$((writes + 1))
		head -c 1048576 /dev/urandom >/tmp/moving$at
		dd if=/tmp/moving$at of=/dev/vda bs=1M seek=$at oflag=direct conv=fsync 2>/dev/null
		moving=ok
		for block in 28 29 30 31; do
			[ ! -e /tmp/moving$block ] ||
				dd if=/dev/vda bs=1M skip=$block count=1 iflag=direct 2>/dev/null | cmp -s - /tmp/moving$block ||
				moving=damaged
		done
		number=$((number + 1))
		{ echo $number && head -c 4096 /dev/zero; } | head -c 4096 >/tmp/number
		dd if=/tmp/number of=/dev/vda bs=4096 seek=8192 count=1 oflag=direct conv=fsync 2>/dev/null
		label=$(dd if=/dev/vdb bs=1 skip=32808 count=32 2>/dev/null | tr -dc 'A-Za-z0-9_-')
		sum=$(still | md5sum | cut -d' ' -f1)
		# One write, so that no tick comes between.
		echo "disk $(($(cat /sys/block/vda/size) * 512)) still $sum moving $moving writes $writes label ${label:--} found $found number $number"
		sleep 1
	done
}
case " $(cat /proc/cmdline) " in
*" lab.disk "*) live_on_disk & ;;
esac

count=0
while :; do
	count=$((count + 1))
	memory=ok
	[ "$(md5sum </tmp/pattern)" = "$sum" ] || memory=damaged
	read -r uptime rest </proc/uptime
	hears=no
	[ ! -e /tmp/hears ] || hears=yes
	echo "tick $count uptime $uptime boot $boot memory $memory hears $hears"
	sleep 1
done
