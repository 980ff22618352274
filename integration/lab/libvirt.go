package lab

// What a host's libvirtd and QEMU are told. The values follow from where they run: there is no systemd, D-Bus, polkit,
// AppArmor or cgroup in a lab, and what would contain a guest is the lab itself.

// libvirtdConf takes the host's UUID: libvirt refuses to migrate between two hosts of one UUID.
const libvirtdConf = `host_uuid = "%s"
listen_tls = 1
listen_tcp = 0
auth_tls = "none"
auth_unix_ro = "none"
auth_unix_rw = "none"
unix_sock_rw_perms = "0700"
`

const qemuConf = `security_driver = "none"
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
default_tls_x509_cert_dir = "/etc/pki/qemu"
default_tls_x509_verify = 1
migrate_tls_force = 1
`

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

// qemuWrapper is a file in the shared directory that stands in place of QEMU on every host. It gives each guest one
// more monitor, so that an observer outside of libvirt can see it run or stand still.
const qemuWrapper = "qemu-wrapper"

const qemuWrapperScript = `#!/bin/sh
guest=
previous=
for argument; do
	[ "$previous" = -uuid ] && guest=$argument
	previous=$argument
done
[ -z "$guest" ] || set -- "$@" -qmp "unix:` + monitorDir + `/$guest.sock,server=on,wait=off"
exec ` + qemuMoved + ` "$@"
`

const monitorDir = stateDir + "/qmp"
