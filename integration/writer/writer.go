// Package writer is a guest of a lab that does nothing but write numbers to its disk and say on its console which of them are there. It
// needs nothing but the BIOS, and boots in a fraction of a second, so that many can be started, moved and ended in a short time.
package writer

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"berth/integration/lab"
)

// program is all that a writer boots: 512 bytes.
//
//go:embed writer.S
var program string

// image is a disk that boots the writer, as a qcow2 file in the shared directory.
const image = "writer.qcow2"

// script assembles the program and makes a disk of it.
const script = `set -e
cd "$0"
trap 'rm -f writer.S writer.o writer.raw' EXIT
as --32 -o writer.o writer.S
ld -m elf_i386 -Ttext 0x7c00 --oformat binary -e _start -o writer.raw writer.o
truncate -s 8M writer.raw
qemu-img convert -f raw -O qcow2 writer.raw writer.qcow2.new
mv writer.qcow2.new writer.qcow2`

// Make makes what Disk copies. It assembles the program, with what a Go compiler with cgo needs anyhow.
func Make(ctx context.Context, l *lab.Lab) error {
	if err := os.WriteFile(path.Join(l.Dir, "shared/writer.S"), []byte(program), 0o600); err != nil {
		return err
	}
	if _, err := l.Operator.Exec(ctx, "sh", "-c", script, lab.SharedDir); err != nil {
		return fmt.Errorf("make the writer's disk: %w; install what is missing with: make deps", err)
	}
	return nil
}

// Disk makes a new disk of a writer, as a file in qcow2, under a path of the host.
func Disk(h *lab.Host, file string) error {
	copied, err := os.ReadFile(h.Path(path.Join(lab.SharedDir, image)))
	if err != nil {
		return err
	}
	return os.WriteFile(h.Path(file), copied, 0o600)
}

// XML is a domain that boots a writer's disk. Its console goes to a file, which a migration does not interrupt; Log reads it. It can have
// up to four vCPUs and begins with one. It has no USB: to emulate an idle controller takes three quarters of what an idle guest costs.
func XML(l *lab.Lab, name, disk string) string {
	return fmt.Sprintf(`<domain type="%s">
  <name>%s</name>
  <memory unit="MiB">32</memory>
  <vcpu current="1">4</vcpu>
  <os>
    <type arch="x86_64" machine="pc">hvm</type>
    <boot dev="hd"/>
  </os>
  <features><acpi/></features>
  <on_crash>destroy</on_crash>
  <devices>
    <disk type="file" device="disk">
      <driver name="qemu" type="qcow2" cache="none"/>
      <source file="%s"/>
      <target dev="vda" bus="virtio"/>
    </disk>
    <serial type="file">
      <source path="%s" append="on"/>
    </serial>
    <controller type="usb" model="none"/>
    <memballoon model="virtio"/>
  </devices>
</domain>
`, l.VirtType, name, disk, lab.SharedDir+"/serial/"+name+".log")
}

// Word is what a line of a writer's console says.
type Word string

// What a writer says.
const (
	// Boots: it has booted. Number is the highest that it found on its disk, and Other how many of those before it are not there.
	Boots Word = "boot"
	// Wrote: Number is on its disk.
	Wrote Word = "wrote"
	// Lost: where it has written a number before, or somebody has, it reads Other.
	Lost Word = "lost"
)

// Line is one line of a writer's console.
type Line struct {
	Word   Word
	Boot   uint32 // changes with every boot
	Number uint32 // grows by one with every turn, over all boots; about five a second
	Other  uint32
}

// Log is what a writer has said so far, on whatever hosts it ran; nothing if it has not said anything yet.
func Log(l *lab.Lab, name string) ([]Line, error) {
	text, err := os.ReadFile(filepath.Join(l.Dir, "shared/serial", name+".log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var lines []Line
	for raw := range bytes.Lines(text) {
		if raw[len(raw)-1] != '\n' {
			break // it is still being written, or its writer has ended in it
		}
		line, ok := parse(string(raw))
		if !ok {
			return lines, fmt.Errorf("%s says %q", name, raw)
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// parse reads a line of a writer's console. What is at its beginning may be half a line that QEMU's end has left.
func parse(raw string) (Line, bool) {
	for _, word := range []Word{Boots, Wrote, Lost} {
		at := strings.LastIndex(raw, string(word)+" ")
		if at < 0 {
			continue
		}
		line := Line{Word: word}
		wanted := 3
		if word == Wrote {
			wanted = 2
		}
		count, _ := fmt.Sscanf(raw[at+len(word):], "%x %x %x", &line.Boot, &line.Number, &line.Other)
		return line, count == wanted
	}
	return Line{}, false
}
