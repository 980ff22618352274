package guard

// rules are all that is allowed. compile says how they are written.
const rules = `
domain type=kvm|qemu id=@number

domain/name #@text
domain/uuid,domain/genid #@uuid
domain/title #@text
domain/description #@prose
domain/metadata *
domain/memory,domain/currentMemory #@number unit dumpCore=@onoff
domain/maxMemory #@number unit slots=@number
domain/vcpu #@number placement=static|auto?host-tuning current=@number cpuset!host-tuning
domain/vcpus
domain/vcpus/vcpu id=@number enabled=@onoff hotpluggable=@onoff order=@number
domain/iothreads #@number
domain/iothreadids
domain/iothreadids/iothread id=@number thread_pool_min=@number thread_pool_max=@number
domain/on_poweroff,domain/on_reboot #destroy|restart|preserve|rename-restart
domain/on_crash #destroy|restart|preserve|rename-restart|coredump-destroy?host-paths|coredump-restart?host-paths
domain/on_lockfailure #poweroff|restart|pause|ignore
domain/pm
domain/pm/suspend-to-mem,domain/pm/suspend-to-disk enabled=@onoff
domain/resource
domain/resource/partition #/machine!host-tuning
domain/memoryBacking
domain/memoryBacking/nosharepages
domain/memoryBacking/source type=anonymous!host-tuning
domain/memoryBacking/hugepages,domain/memoryBacking/locked,domain/memoryBacking/access !host-tuning
domain/memoryBacking/allocation,domain/memoryBacking/discard !host-tuning
domain/cputune,domain/numatune,domain/blkiotune,domain/memtune,domain/perf,domain/defaultiothread,domain/throttlegroups !host-tuning
domain/bootloader,domain/bootloader_args !host-programs
domain/idmap !shared-folders
domain/seclabel type=dynamic!unconfined model=selinux|apparmor|dac!unconfined relabel=yes!unconfined
domain/seclabel/label,domain/seclabel/imagelabel #@words
domain/seclabel/baselabel !unconfined

domain/os firmware=bios|efi
domain/os/type #hvm arch machine
domain/os/loader #|@loader!firmware readonly=@onoff secure=@onoff type=rom|pflash stateless=@onoff format=raw|qcow2
domain/os/nvram #|@nvram!firmware template=@loader!firmware templateFormat=raw|qcow2 type=file!firmware format=raw|qcow2
domain/os/nvram/source file=@nvram!firmware index=@number
domain/os/firmware
domain/os/firmware/feature enabled=@onoff name
domain/os/kernel,domain/os/initrd #@file!host-paths
domain/os/dtb !host-paths
domain/os/cmdline #@text
domain/os/acpi !firmware
domain/os/init,domain/os/initarg,domain/os/initenv,domain/os/initdir,domain/os/inituser,domain/os/initgroup !host-programs
domain/os/boot dev
domain/os/bootmenu enable=@onoff timeout=@number
domain/os/smbios mode=emulate|sysinfo!host-paths
domain/os/bios useserial=@onoff rebootTimeout=@number
domain/sysinfo type=smbios!firmware
domain/sysinfo/bios,domain/sysinfo/system,domain/sysinfo/baseBoard,domain/sysinfo/chassis,domain/sysinfo/oemStrings
domain/sysinfo/bios/entry,domain/sysinfo/system/entry,domain/sysinfo/baseBoard/entry,domain/sysinfo/chassis/entry #@text name
domain/sysinfo/oemStrings/entry #@text
domain/sysinfo/entry !firmware

domain/cpu mode=custom|host-model|host-passthrough|maximum match check migratable=@onoff deprecated_features=@onoff
domain/cpu/model #@words fallback vendor_id=@words
domain/cpu/vendor #@words
domain/cpu/topology sockets=@number dies=@number clusters=@number cores=@number threads=@number
domain/cpu/feature policy name
domain/cpu/cache level=@number mode
domain/cpu/maxphysaddr mode bits=@number limit=@number
domain/cpu/numa
domain/cpu/numa/cell id=@number cpus=@cpus memory=@number unit memAccess=private!host-tuning discard=no!host-tuning
domain/cpu/numa/cell/distances
domain/cpu/numa/cell/distances/sibling id=@number value=@number

domain/clock offset=utc|localtime|timezone|variable|absolute adjustment timezone=@words basis start=@number
domain/clock/timer name tickpolicy track present=@onoff mode frequency=@number
domain/clock/timer/catchup threshold=@number slew=@number limit=@number

domain/features
domain/features/acpi,domain/features/pae,domain/features/viridian,domain/features/privnet
domain/features/apic eoi=@onoff
domain/features/hap,domain/features/pvspinlock,domain/features/pmu,domain/features/vmport,domain/features/htm state=@onoff
domain/features/vmcoreinfo,domain/features/ras,domain/features/async-teardown,domain/features/ccf-assist state=@onoff
domain/features/gic version
domain/features/ioapic driver=kvm|qemu
domain/features/smm state=@onoff
domain/features/smm/tseg #@number unit
domain/features/kvm
domain/features/kvm/hidden,domain/features/kvm/hint-dedicated,domain/features/kvm/poll-control,domain/features/kvm/pv-ipi state=@onoff
domain/features/kvm/dirty-ring state=@onoff size=@number
domain/features/hyperv mode=custom|passthrough
domain/features/hyperv/relaxed,domain/features/hyperv/vapic,domain/features/hyperv/vpindex,domain/features/hyperv/runtime state=@onoff
domain/features/hyperv/synic,domain/features/hyperv/reset,domain/features/hyperv/frequencies,domain/features/hyperv/ipi state=@onoff
domain/features/hyperv/reenlightenment,domain/features/hyperv/evmcs,domain/features/hyperv/avic,domain/features/hyperv/emsr_bitmap
  state=@onoff
domain/features/hyperv/xmm_input state=@onoff
domain/features/hyperv/tlbflush state=@onoff
domain/features/hyperv/tlbflush/direct,domain/features/hyperv/tlbflush/extended state=@onoff
domain/features/hyperv/stimer state=@onoff
domain/features/hyperv/stimer/direct state=@onoff
domain/features/hyperv/spinlocks state=@onoff retries=@number
domain/features/hyperv/vendor_id state=@onoff value=@words
domain/features/tcg
domain/features/tcg/tb-cache #@number unit

domain/devices
domain/devices/emulator #@emulator!host-programs
` + diskRules + networkRules + characterRules + otherDevices

const diskRules = `
domain/devices/disk type=file|block|volume|dir?host-paths|nvme?host-devices|vhostvdpa?host-devices!host-sockets
  device=disk|cdrom|floppy|lun?host-devices snapshot=no|internal|external model rawio=no!host-devices sgio=filtered!host-devices
domain/devices/disk/driver name=qemu type=raw|qcow2|qed|vmdk|vdi|vpc cache=none|writeback|writethrough|directsync|unsafe
  io=native|threads|io_uring error_policy rerror_policy discard=unmap|ignore detect_zeroes discard_no_unref=@onoff iothread=@number
  queues=@number queue_size=@number ioeventfd=@onoff event_idx=@onoff copy_on_read=@onoff iommu=@onoff ats=@onoff packed=@onoff
  page_per_vq=@onoff
domain/devices/disk/driver/metadata_cache
domain/devices/disk/driver/metadata_cache/max_size #@number unit
domain/devices/disk/source,domain/devices/disk/backingStore/source,domain/devices/disk/mirror/source file=|@file!host-paths
  dev=@file!host-paths dir!host-paths pool=@pool!host-paths volume=@volume!host-paths mode=host!host-sockets protocol!host-sockets
  name!host-sockets query!host-sockets tls!host-sockets type!host-devices namespace!host-devices managed!host-devices index=@number
  startupPolicy=mandatory|requisite|optional
domain/devices/disk/source/slices,domain/devices/disk/backingStore/source/slices
domain/devices/disk/source/slices/slice,domain/devices/disk/backingStore/source/slices/slice type=storage offset=@number size=@number
domain/devices/disk/source/seclabel,domain/devices/disk/backingStore/source/seclabel !unconfined
domain/devices/disk/source/host,domain/devices/disk/source/auth,domain/devices/disk/source/reservations,
 domain/devices/disk/source/config !host-sockets
domain/devices/disk/source/initiator,domain/devices/disk/source/cookies,domain/devices/disk/source/ssl,
 domain/devices/disk/source/snapshot !host-sockets
domain/devices/disk/source/address !host-devices
domain/devices/disk/backingStore/source/host,domain/devices/disk/backingStore/source/auth !host-sockets
domain/devices/disk/auth !host-sockets
domain/devices/disk/backingStore type=file|block|volume!host-sockets index=@number
domain/devices/disk/backingStore/format,domain/devices/disk/mirror/format type
domain/devices/disk/mirror type=file|block|volume!host-sockets job=copy|commit|active-commit ready=@onoff|abort|pivot
  file=@file!host-paths format
domain/devices/disk/mirror/backingStore type=file|block|volume!host-sockets index=@number
domain/devices/disk/mirror/backingStore/format type
domain/devices/disk/mirror/backingStore/source file=@file!host-paths dev=@file!host-paths index=@number
domain/devices/disk/target dev bus tray=open|closed removable=@onoff rotation_rate=@number
domain/devices/disk/iotune
domain/devices/disk/iotune/total_bytes_sec,domain/devices/disk/iotune/read_bytes_sec,domain/devices/disk/iotune/write_bytes_sec #@number
domain/devices/disk/iotune/total_iops_sec,domain/devices/disk/iotune/read_iops_sec,domain/devices/disk/iotune/write_iops_sec #@number
domain/devices/disk/iotune/total_bytes_sec_max,domain/devices/disk/iotune/read_bytes_sec_max,
 domain/devices/disk/iotune/write_bytes_sec_max #@number
domain/devices/disk/iotune/total_iops_sec_max,domain/devices/disk/iotune/read_iops_sec_max,
 domain/devices/disk/iotune/write_iops_sec_max #@number
domain/devices/disk/iotune/size_iops_sec,domain/devices/disk/iotune/group_name #@words
domain/devices/disk/readonly,domain/devices/disk/shareable,domain/devices/disk/transient
domain/devices/disk/serial,domain/devices/disk/wwn,domain/devices/disk/vendor,domain/devices/disk/product #@text
domain/devices/disk/boot,domain/devices/interface/boot order=@number loadparm
domain/devices/disk/geometry cyls=@number heads=@number secs=@number trans
domain/devices/disk/blockio logical_block_size=@number physical_block_size=@number discard_granularity=@number
domain/devices/disk/alias,domain/devices/interface/alias,domain/devices/controller/alias,domain/devices/serial/alias,
 domain/devices/console/alias name
domain/devices/channel/alias,domain/devices/parallel/alias,domain/devices/input/alias,domain/devices/video/alias,
 domain/devices/sound/alias name
domain/devices/memballoon/alias,domain/devices/rng/alias,domain/devices/watchdog/alias,domain/devices/panic/alias,
 domain/devices/redirdev/alias name
domain/devices/tpm/alias,domain/devices/iommu/alias,domain/devices/memory/alias,domain/devices/hub/alias name
domain/devices/disk/address,domain/devices/interface/address,domain/devices/controller/address,domain/devices/serial/address,
 domain/devices/console/address,domain/devices/channel/address,domain/devices/parallel/address,domain/devices/input/address,
 domain/devices/video/address,domain/devices/sound/address,domain/devices/memballoon/address,domain/devices/rng/address,
 domain/devices/watchdog/address,domain/devices/panic/address,domain/devices/redirdev/address,domain/devices/iommu/address,
 domain/devices/memory/address,domain/devices/hub/address,domain/devices/tpm/address,domain/devices/nvram/address
  type=pci|drive|virtio-serial|ccid|usb|spapr-vio|virtio-mmio|isa|dimm|ccw|unassigned domain=@hex bus=@hex slot=@hex function=@hex
  multifunction=@onoff controller=@number target=@number unit=@number port iobase=@hex irq=@hex reg=@hex base=@hex cssid=@hex
  ssid=@hex devno=@hex
domain/devices/nvram
`

const networkRules = `
domain/devices/interface
  type=network|bridge|ethernet?host-network|direct?host-network|user?host-network|vhostuser?host-sockets|hostdev?host-devices|
   vdpa?host-devices|server?host-sockets|client?host-sockets|mcast?host-sockets|udp?host-sockets|internal?host-network|
   vds?host-network managed=yes|no?host-network trustGuestRxFilters=no!host-network
domain/devices/interface/mac address=@mac type=generated|static check=yes|no
domain/devices/interface/source network=@text portgroup=@text portid=@uuid bridge=@bridge!host-network dev!host-network
  mode!host-network path!host-sockets address!host-sockets port!host-sockets type!host-sockets
domain/devices/interface/source/address !host-devices
domain/devices/interface/source/local !host-sockets
domain/devices/interface/source/ip,domain/devices/interface/source/route,domain/devices/interface/portForward,
 domain/devices/interface/ip,domain/devices/interface/route !host-network
domain/devices/interface/virtualport type=openvswitch!host-network
domain/devices/interface/virtualport/parameters interfaceid=@uuid profileid=@words managerid!host-network typeid!host-network
  typeidversion!host-network instanceid!host-network
domain/devices/interface/model type
domain/devices/interface/driver name=qemu|vhost txmode ioeventfd=@onoff event_idx=@onoff queues=@number rx_queue_size=@number
  tx_queue_size=@number rss=@onoff rss_hash_report=@onoff iommu=@onoff ats=@onoff packed=@onoff page_per_vq=@onoff
domain/devices/interface/driver/host csum=@onoff gso=@onoff tso4=@onoff tso6=@onoff ecn=@onoff ufo=@onoff mrg_rxbuf=@onoff
domain/devices/interface/driver/guest csum=@onoff tso4=@onoff tso6=@onoff ecn=@onoff ufo=@onoff
domain/devices/interface/backend !host-devices
domain/devices/interface/script,domain/devices/interface/downscript !host-programs
domain/devices/interface/target dev=@tap!host-network managed!host-network
domain/devices/interface/guest dev actual
domain/devices/interface/rom bar=@onoff enabled=@onoff file!host-paths
domain/devices/interface/filterref filter
domain/devices/interface/filterref/parameter name value=@words
domain/devices/interface/bandwidth
domain/devices/interface/bandwidth/inbound,domain/devices/interface/bandwidth/outbound average=@number peak=@number burst=@number
  floor=@number
domain/devices/interface/vlan !host-network
domain/devices/interface/link state=up|down
domain/devices/interface/mtu size=@number
domain/devices/interface/port isolated=@onoff
domain/devices/interface/tune
domain/devices/interface/tune/sndbuf #@number
domain/devices/interface/coalesce
domain/devices/interface/coalesce/rx
domain/devices/interface/coalesce/rx/frames max=@number
domain/devices/interface/acpi index=@number
domain/devices/interface/teaming type=persistent|transient persistent
`

const characterRules = `
domain/devices/serial,domain/devices/console,domain/devices/parallel type=pty|null!host-sockets tty=@pty!host-sockets
domain/devices/channel type=pty|unix|null|spicevmc|spiceport|qemu-vdagent!host-sockets
domain/devices/serial/source,domain/devices/console/source,domain/devices/parallel/source path=@pty!host-sockets mode!host-sockets
  host!host-sockets service!host-sockets tls!host-sockets append!host-sockets channel
domain/devices/channel/source path=@pty|@channel!host-sockets mode=bind!host-sockets host!host-sockets service!host-sockets channel
domain/devices/channel/source/clipboard copypaste=@onoff
domain/devices/channel/source/mouse mode
domain/devices/serial/protocol,domain/devices/console/protocol,domain/devices/parallel/protocol,domain/devices/channel/protocol
  !host-sockets
domain/devices/serial/log,domain/devices/console/log,domain/devices/parallel/log,domain/devices/channel/log !host-paths
domain/devices/serial/target,domain/devices/console/target,domain/devices/parallel/target type port=@number name
  state=connected|disconnected
domain/devices/serial/target/model name
domain/devices/channel/target type=virtio|guestfwd?host-sockets|xen?host-sockets name state=connected|disconnected port=@number
  address!host-sockets
domain/devices/graphics
  type=vnc|spice|egl-headless?host-devices|sdl?host-sockets|desktop?host-sockets|rdp?host-sockets|dbus?host-sockets port=@number
  tlsPort=@number autoport=@onoff websocket=@number listen=@loopback!host-sockets socket!host-sockets keymap passwd=@text
  passwdValidTo connected sharePolicy defaultMode powerControl=@onoff wait=@onoff display!host-sockets xauth!host-paths
  p2p!host-sockets address!host-sockets
domain/devices/graphics/listen type=address|none|socket address=@loopback!host-sockets network!host-sockets socket!host-sockets
domain/devices/graphics/channel name mode
domain/devices/graphics/image,domain/devices/graphics/jpeg,domain/devices/graphics/zlib,domain/devices/graphics/playback compression
domain/devices/graphics/streaming,domain/devices/graphics/mouse mode
domain/devices/graphics/clipboard copypaste=@onoff
domain/devices/graphics/filetransfer enable=@onoff
domain/devices/graphics/gl enable=no!host-devices rendernode!host-devices
domain/devices/graphics/audio id=@number
domain/devices/redirdev bus=usb type=spicevmc!host-sockets
domain/devices/redirdev/boot order=@number
domain/devices/redirdev/source,domain/devices/redirdev/protocol !host-sockets
domain/devices/redirfilter
domain/devices/redirfilter/usbdev class product vendor version allow=@onoff
domain/devices/smartcard !host-devices
`

const otherDevices = `
domain/devices/controller type index=@number model ports=@number vectors=@number maxEventChannels=@number maxGrantFrames=@number
domain/devices/controller/driver queues=@number cmd_per_lun=@number max_sectors=@number ioeventfd=@onoff iothread=@number iommu=@onoff
  ats=@onoff packed=@onoff page_per_vq=@onoff
domain/devices/controller/model name
domain/devices/controller/target chassisNr=@number chassis=@number port=@hex busNr=@number index=@number hotplug=@onoff
  memReserve=@number
domain/devices/controller/target/node #@number
domain/devices/controller/pcihole64 #@number unit
domain/devices/controller/master startport=@number
domain/devices/input type=mouse|tablet|keyboard!host-devices bus model
domain/devices/input/driver iommu=@onoff ats=@onoff packed=@onoff page_per_vq=@onoff
domain/devices/input/source !host-devices
domain/devices/video
domain/devices/video/driver name=qemu!host-sockets iommu=@onoff ats=@onoff packed=@onoff page_per_vq=@onoff vgaconf
domain/devices/video/model type ram=@number vram=@number vram64=@number vgamem=@number heads=@number primary=@onoff
  blob=no!host-devices edid=@onoff
domain/devices/video/model/acceleration accel3d=no!host-devices accel2d=no!host-devices rendernode!host-devices
domain/devices/video/model/resolution x=@number y=@number
domain/devices/sound model multichannel=@onoff streams=@number
domain/devices/sound/codec type
domain/devices/sound/audio id=@number
domain/devices/audio id=@number type=none|spice!host-devices timerPeriod=@number
domain/devices/audio/input,domain/devices/audio/output mixingEngine=@onoff fixedSettings=@onoff voices=@number bufferLength=@number
domain/devices/audio/input/settings,domain/devices/audio/output/settings frequency=@number channels=@number format
domain/devices/memballoon model autodeflate=@onoff freePageReporting=@onoff
domain/devices/memballoon/stats period=@number
domain/devices/memballoon/driver iommu=@onoff ats=@onoff packed=@onoff page_per_vq=@onoff
domain/devices/rng model=virtio|virtio-transitional|virtio-non-transitional
domain/devices/rng/rate bytes=@number period=@number
domain/devices/rng/backend model=random|builtin!host-sockets type!host-sockets #|@random!host-devices
domain/devices/rng/backend/source,domain/devices/rng/backend/protocol !host-sockets
domain/devices/rng/driver iommu=@onoff ats=@onoff packed=@onoff page_per_vq=@onoff
domain/devices/watchdog model action=reset|shutdown|poweroff|pause|none|inject-nmi!host-paths
domain/devices/panic model
domain/devices/hub type
domain/devices/iommu model
domain/devices/iommu/driver intremap=@onoff caching_mode=@onoff eim=@onoff iotlb=@onoff aw_bits=@number dma_translation=@onoff
domain/devices/memory model=dimm!host-paths access=private!host-tuning discard=no!host-tuning
domain/devices/memory/uuid #@uuid
domain/devices/memory/source !host-paths
domain/devices/memory/target
domain/devices/memory/target/size,domain/devices/memory/target/block,domain/devices/memory/target/requested,
 domain/devices/memory/target/current #@number unit
domain/devices/memory/target/node #@number
domain/devices/tpm model
domain/devices/tpm/backend type=emulator?host-programs!host-devices version persistent_state=@onoff debug=@number path!host-sockets
domain/devices/tpm/backend/device,domain/devices/tpm/backend/source !host-devices
domain/devices/tpm/backend/encryption,domain/devices/tpm/backend/profile !host-programs
domain/devices/tpm/backend/active_pcr_banks
domain/devices/tpm/backend/active_pcr_banks/sha1,domain/devices/tpm/backend/active_pcr_banks/sha256,
 domain/devices/tpm/backend/active_pcr_banks/sha384,domain/devices/tpm/backend/active_pcr_banks/sha512
domain/devices/hostdev,domain/devices/crypto !host-devices
domain/devices/filesystem,domain/devices/shmem !shared-folders
domain/devices/vsock !host-sockets
domain/devices/lease,domain/devices/pstore !host-paths
domain/devices/nvdimm !host-paths
`
