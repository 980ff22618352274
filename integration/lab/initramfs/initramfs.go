// Package initramfs packs what a guest of a lab boots from.
package initramfs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Writer writes the "newc" archive that Linux unpacks as initramfs (cpio(5), New ASCII Format).
type Writer struct {
	To    io.Writer
	Err   error // the first one; nothing is written after it
	inode int
}

// Add adds a file with its mode, a directory, or a link, whose data is where it leads.
func (c *Writer) Add(name string, mode int, data []byte) {
	if c.Err != nil {
		return
	}
	c.inode++
	var entry bytes.Buffer
	entry.WriteString("070701")
	for _, field := range []int{c.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0} {
		fmt.Fprintf(&entry, "%08x", field)
	}
	pad := func() { entry.Write(make([]byte, (4-entry.Len()%4)%4)) }
	entry.WriteString(name + "\x00")
	pad()
	entry.Write(data)
	pad()
	_, c.Err = c.To.Write(entry.Bytes())
}

// AddProgram adds a program to /bin and the libraries that it is linked with, as this machine has them, to /lib.
func (c *Writer) AddProgram(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	c.Add("bin/"+filepath.Base(path), 0o100755, text)
	linked, err := exec.CommandContext(context.Background(), "ldd", path).Output()
	if err != nil {
		return fmt.Errorf("ldd %s: %w", path, err)
	}
	for line := range strings.Lines(string(linked)) {
		words := strings.Fields(line)
		at := 0
		if len(words) > 2 && words[1] == "=>" {
			at = 2
		}
		if len(words) == 0 || !filepath.IsAbs(words[at]) {
			continue // what the kernel brings along, or what is missing, which the program then says
		}
		library, err := os.ReadFile(words[at])
		if err != nil {
			return err
		}
		folder := "lib/"
		if at == 0 {
			folder = "lib64/" // the loader, which the program names by its path
		}
		c.Add(folder+filepath.Base(words[at]), 0o100755, library)
	}
	return c.Err
}
