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
}
devices &

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

count=0
while :; do
	count=$((count + 1))
	memory=ok
	[ "$(md5sum </tmp/pattern)" = "$sum" ] || memory=damaged
	read -r uptime rest </proc/uptime
	echo "tick $count uptime $uptime boot $boot memory $memory"
	sleep 1
done
