package lab

import "time"

// What a host's libvirtd and QEMU are told. The values follow from where they run: there is no systemd, D-Bus, polkit,
// AppArmor or cgroup in a lab, and what would contain a guest is the lab itself.

// libvirtdConf takes the host's UUID: libvirt refuses to migrate between two hosts of one UUID.
const libvirtdConf = `host_uuid = "%s"
listen_tls = 1
listen_tcp = 0
auth_tls = "none"
auth_unix_ro = "none"
auth_unix_rw = "none"
unix_sock_group = "libvirt"
unix_sock_rw_perms = "0770"
` + keepalive

const qemuConf = `security_driver = "none"
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
default_tls_x509_verify = 1
migrate_tls_force = 1
` + keepalive

// keepalive makes a libvirtd notice after ten seconds that the other side of a connection is silent. By default it takes
// half a minute; what it does then is the same.
const keepalive = `keepalive_interval = 2
keepalive_count = 4
`

// LibvirtPatience is how long a libvirtd waits at most for a silent one before it gives a migration up.
const LibvirtPatience = 10 * time.Second

const networkXML = `<network>
  <name>lab</name>
  <uuid>%s</uuid>
  <forward mode="bridge"/>
  <bridge name="%s"/>
</network>
`

const poolXML = `<pool type="dir">
  <name>%s</name>
  <uuid>%s</uuid>
  <target><path>%s</path></target>
</pool>
`

// qemuWrapper is a file in the shared directory that stands in place of QEMU on every host. It gives each guest two more
// monitors: one on which an observer outside of libvirt sees it run or stand still, and one for questions in between.
const qemuWrapper = "qemu-wrapper"

const qemuWrapperScript = `#!/bin/sh
guest=
previous=
for argument; do
	[ "$previous" = -uuid ] && guest=$argument
	previous=$argument
done
[ -z "$guest" ] || set -- "$@" -qmp "unix:` + monitorDir + `/$guest.sock,server=on,wait=off" \
	-qmp "unix:` + monitorDir + `/$guest.` + askSocket + `,server=on,wait=off"
exec ` + qemuMoved + ` "$@"
`

const (
	monitorDir = stateDir + "/qmp"
	askSocket  = "ask.sock"
)
