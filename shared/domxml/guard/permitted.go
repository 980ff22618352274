package guard

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// Permitted is what somebody may put onto a host, and the places that need no permission.
type Permitted struct {
	Permissions []Permission
	Folders     []string // what is in them may be a disk, a medium or a kernel
	Pools       []string // libvirt's names of pools whose volumes may be used
	Bridges     []string // of the host, that are declared networks
}

func (p *Permitted) has(permission Permission) bool {
	return slices.Contains(p.Permissions, permission)
}

// File tells whether a path is one of a file in a known folder. How it is written has to be its only way: then no other program reads
// it as another path.
func (p *Permitted) File(file string) bool {
	if !path.IsAbs(file) || path.Clean(file) != file || !printable(file) {
		return false
	}
	return slices.ContainsFunc(p.Folders, func(folder string) bool { return inside(folder, file) })
}

// Pool tells whether volumes of a pool may be used.
func (p *Permitted) Pool(pool string) bool { return slices.Contains(p.Pools, pool) }

// Bridge tells whether a bridge is a declared network.
func (p *Permitted) Bridge(bridge string) bool { return slices.Contains(p.Bridges, bridge) }

// inside tells whether a clean path is below a folder. A pool that is said to be in one of the host's own is a slip, or a lie.
func inside(folder, file string) bool {
	return Folder(folder) && strings.HasPrefix(file, folder+"/")
}

// ownFolders are the host's own: no pool is in one of them as a whole, and nobody says that they are for images.
var ownFolders = []string{
	"/", "/dev", "/etc", "/proc", "/sys", "/run", "/boot", "/root", "/usr", "/bin", "/sbin", "/lib", "/var", "/var/lib", "/tmp",
}

// Folder tells whether a path may be a folder for images.
func Folder(folder string) bool {
	return path.IsAbs(folder) && path.Clean(folder) == folder && printable(folder) && !strings.Contains(folder, ",") &&
		!slices.Contains(ownFolders, folder)
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}
