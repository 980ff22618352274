// Command docs makes what the packages ship in addition to the binaries, from the commands themselves: manual pages, completions
// for three shells, and the list and the licences of everything linked in. It runs from the root of the module.
package main

import (
	"bytes"
	"compress/gzip"
	linkinfo "debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"berth/agent/command"
	"berth/coordinator/cli"
	"berth/coordinator/daemon"
	"berth/shared/buildinfo"
)

// programs are the commands, and the handwritten pages that go with them.
var programs = []struct {
	root  *cobra.Command
	pages []string
}{
	{
		cli.New(cli.Options{
			CoordinatorCommands: daemon.Commands(), SnapshotCommands: daemon.SnapshotCommands(), InitCommand: daemon.FirstCommand(),
		}),
		[]string{"berth-coordinator.yaml.5"},
	},
	{command.New(), []string{"berth-agent.yaml.5"}},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: docs STAGE    (STAGE/bin has the binaries)")
		os.Exit(64)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func generate(stage string) error {
	for _, folder := range []string{"completions", "licenses", "sbom"} {
		if err := os.MkdirAll(filepath.Join(stage, folder), 0o755); err != nil {
			return err
		}
	}
	for _, program := range programs {
		name := program.root.Name()
		if err := writeCompletions(program.root, filepath.Join(stage, "completions", name)); err != nil {
			return err
		}
		if err := writePages(program.root, program.pages, filepath.Join(stage, "man", name)); err != nil {
			return err
		}
		binary := filepath.Join(stage, "bin", name)
		info, err := linkinfo.ReadFile(binary)
		if err != nil {
			return err
		}
		all, err := linkedInto(info)
		if err != nil {
			return fmt.Errorf("what is linked into %s: %w", name, err)
		}
		if err := writeLicenses(binary, all, filepath.Join(stage, "licenses", name)); err != nil {
			return err
		}
		if err := writeBOM(binary, info, all, filepath.Join(stage, "sbom", name+".cdx.json")); err != nil {
			return err
		}
	}
	return nil
}

func writeCompletions(root *cobra.Command, base string) error {
	root.InitDefaultCompletionCmd()
	if err := root.GenBashCompletionFileV2(base+".bash", true); err != nil {
		return err
	}
	if err := root.GenZshCompletionFile(base + ".zsh"); err != nil {
		return err
	}
	return root.GenFishCompletionFile(base+".fish", true)
}

// writePages writes one page per command, and the handwritten ones, compressed as the distributions want them. The
// library takes the date from SOURCE_DATE_EPOCH.
func writePages(root *cobra.Command, handwritten []string, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	hideFooter(root)
	header := &doc.GenManHeader{Section: "1", Source: "Berth " + buildinfo.Version(), Manual: "Berth"}
	if err := doc.GenManTree(root, header, folder); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(folder, "*.1"))
	if err != nil {
		return err
	}
	for _, page := range pages {
		if err := compress(page, page+".gz"); err != nil {
			return err
		}
		if err := os.Remove(page); err != nil {
			return err
		}
	}
	for _, page := range slices.Sorted(slices.Values(handwritten)) {
		if err := compress(filepath.Join("packaging/man", page), filepath.Join(folder, page+".gz")); err != nil {
			return err
		}
	}
	return nil
}

// hideFooter leaves out the line that says which library made the page.
func hideFooter(command *cobra.Command) {
	command.DisableAutoGenTag = true
	for _, child := range command.Commands() {
		hideFooter(child)
	}
}

// compress writes no name and no time, so the same page gives the same bytes.
func compress(source, target string) error {
	content, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := writer.Write(content); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return os.WriteFile(target, out.Bytes(), 0o644)
}
