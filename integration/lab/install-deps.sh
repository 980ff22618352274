#!/bin/sh
# Installs what building Berth and raising a lab need on Debian or Ubuntu, and gets the kernel that the lab's guests
# boot. Does nothing when all of it is there. Usage: install-deps.sh DIRECTORY-FOR-THE-KERNEL [PACKAGE ...]
#
# No service is started: libvirtd comes without its systemd units, whatever else a package wants to start is held back
# while apt runs, and the guests' kernel is unpacked, never installed, so this machine boots as before.
set -eu

directory=$1
shift

say() { echo "deps: $*"; }
die() { echo "deps: $*" >&2; exit 1; }

packages="gcc libc6-dev ca-certificates
	libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients qemu-system-x86
	qemu-utils virtnbdbackup mtools syslinux busybox-static iproute2 nftables util-linux kmod xz-utils zstd
	$*"

missing=""
for package in $packages; do
	# Ubuntu's is a snap, which root cannot drive: only the suite of the console needs it, and says so.
	[ "$package" != chromium ] || ! command -v chromium >/dev/null || continue
	[ "$package" != chromium ] || ! grep -qi '^ID=ubuntu' /etc/os-release || continue
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=""
	[ "$state" = installed ] || missing="$missing $package"
done

root() {
	[ "$(id -u)" = 0 ] || die "installing$missing needs root"
	command -v apt-get >/dev/null || die "no apt-get here; install by hand:$missing"
}

update() {
	[ -n "$(find /var/lib/apt/lists -name '*_Packages*' -print -quit 2>/dev/null)" ] || apt-get update -q
}

# While this file exists, packages do not start services (Debian Policy, invoke-rc.d).
policy=/usr/sbin/policy-rc.d

install_missing() {
	root
	update
	if [ ! -e "$policy" ]; then
		trap 'rm -f "$policy"' EXIT
		trap 'exit 1' INT TERM HUP
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod 755 "$policy"
	fi
	say "installing$missing"
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing ||
		die "apt-get could not install$missing; if its lists are old, run: apt-get update"
}

# The modules that a lab guest loads, in this order: the power button, and virtio with disks, the memory balloon and channels.
modules="button evdev virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk virtio_balloon virtio_console"

# take_kernel ROOT copies a kernel and the guests' modules from a file system tree. Modules may be built in.
take_kernel() {
	image=$(find "$1/boot" -maxdepth 1 -name 'vmlinuz-*' | grep -E -- '-(cloud|kvm|virtual|generic)' | sort -V | tail -n 1) || return 1
	[ -n "$image" ] || return 1
	version=${image#"$1/boot/vmlinuz-"}
	rm -rf "$directory/modules"
	mkdir -p "$directory/modules"
	number=10
	for module in $modules; do
		found=$(find "$1/lib/modules/$version" "$1/usr/lib/modules/$version" -name "$module.ko*" -print -quit 2>/dev/null) || true
		target="$directory/modules/$number-$module.ko"
		case $found in
		*.ko) cp "$found" "$target" ;;
		*.xz) xz -dc "$found" >"$target" ;;
		*.zst) zstd -qdc "$found" >"$target" ;;
		esac
		number=$((number + 1))
	done
	echo "$modules" >"$directory/modules/list"
	cp "$image" "$directory/vmlinuz.new"
	mv "$directory/vmlinuz.new" "$directory/vmlinuz"
	say "guests boot Linux $version"
}

# newest_kernel prints the packages that hold the kernel which the distribution's package for guests stands for.
newest_kernel() {
	for guests in linux-image-cloud-amd64 linux-image-virtual linux-image-kvm; do
		image=$(apt-cache depends --no-recommends --no-suggests "$guests" 2>/dev/null |
			sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
		[ -n "$image" ] || continue
		echo "$image"
		# Ubuntu keeps the modules in a package of their own.
		split=linux-modules-${image#linux-image-}
		[ -z "$(apt-cache policy "$split" 2>/dev/null)" ] || echo "$split"
		return
	done
}

download_kernel() {
	root
	update
	wanted=$(newest_kernel)
	[ -n "$wanted" ] || die "this distribution has no kernel package for guests that is known here"
	unpack "$wanted"
	take_kernel "$work/root" || { rm -rf "$work"; die "no kernel in $wanted"; }
	rm -rf "$work"
}

# unpack PACKAGES downloads packages and unpacks them below $work/root, which is to be removed. Nothing is installed.
unpack() {
	work=$(mktemp -d)
	say "downloading $1"
	# apt drops its rights to download. Lists that are too old name packages that are no longer there.
	if ! (chown _apt "$work" && cd "$work" && fetch "$1"); then
		rm -rf "$work"
		die "apt-get could not download $1"
	fi
	for package in "$work"/*.deb; do
		dpkg-deb -x "$package" "$work/root"
	done
}

fetch() {
	# shellcheck disable=SC2086
	apt-get download -q $1 || { apt-get update -q && apt-get download -q $1; }
}

# take PACKAGE PROGRAM... gets programs of a package, with none of what else the package does to a machine. Those that are there stay.
take() {
	from=$1
	shift
	absent=
	for program; do
		[ -e "$directory/$program" ] || absent=1
	done
	[ -n "$absent" ] || return 0
	root
	update
	unpack "$from"
	for program; do
		found=$(find "$work/root/usr" -path "*bin/$program" -type f -print -quit) # a package may have an init script of the same name
		[ -z "$found" ] || cp "$found" "$directory/$program"
		[ -n "$found" ] || { rm -rf "$work"; die "no $program in $from"; }
	done
	rm -rf "$work"
}

[ -z "$missing" ] || install_missing
# A kernel that was taken with other modules is taken again.
if [ ! -e "$directory/vmlinuz" ] || [ "$(cat "$directory/modules/list" 2>/dev/null)" != "$modules" ]; then
	mkdir -p "$directory"
	take_kernel "" || download_kernel
fi
# QEMU's guest agent, which a guest of the lab can run. Its libraries are those of QEMU, which is installed.
take qemu-guest-agent qemu-ga
# What checks rules for Prometheus, and what reads figures and rules as at a customer's. They need nothing beside themselves.
take prometheus promtool prometheus
