package document

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// ExportCommand is the command export.
func ExportCommand(a *term.App) *cobra.Command {
	var (
		scenario bool
		seed     uint64
		to       string
	)
	cmd := &cobra.Command{
		Use: "export", Short: "Write the estate as a document, or the whole cluster as a scenario", Args: term.Arguments(0),
		Long: `Write the estate as a document that 'berth apply' reads, always in the same order: good for a diff and for keeping.

With --scenario it is a scenario for 'berth simulate': the estate, the figures of the nodes and what runs on them, as
they are now. It needs no cluster to run, so that tomorrow's keys can be tried on today's state, and a report of a
surprising decision is a file. Names, sizes and keys stand in it; no secrets.`,
		Example: `  berth export --to estate.yaml
  berth export | diff estate.yaml -
  berth export --scenario --seed 7 --to today.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("seed") && !scenario {
				return term.Usagef(cmd, "--seed is for --scenario")
			}
			if cmd.Flags().Changed("to") && to == "" {
				return term.Usagef(cmd, "--to: FILE is missing")
			}
			return export(a, cmd, &berthv1.ExportEstateRequest{Scenario: scenario, Seed: seed}, to)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&scenario, "scenario", false, "write a scenario for 'berth simulate', with the figures of now")
	cmd.Flags().Uint64Var(&seed, "seed", 0, "with --scenario: `NUMBER` that ties are drawn with (default one is drawn)")
	cmd.Flags().StringVar(&to, "to", "", "`FILE` to write, instead of the standard output")
	term.Complete(cmd, "seed", cobra.NoFileCompletions)
	term.Complete(cmd, "to", term.CompleteFiles)
	return cmd
}

func export(a *term.App, cmd *cobra.Command, request *berthv1.ExportEstateRequest, to string) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	answer, err := term.AskFor(cmd.Context(), s, estateLimit, term.Client.ExportEstate, request)
	if err != nil {
		return err
	}
	if to == "" && (!a.Format.Structured() || a.Format == term.AsYAML) { // the document is YAML itself
		_, err := cmd.OutOrStdout().Write(answer.GetDocument())
		return err
	}
	if to == "" {
		return a.Print(cmd, term.Result{Message: answer})
	}
	if err := writeWhole(to, answer.GetDocument()); err != nil {
		return err
	}
	if !a.Quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "written to %s\n", to)
	}
	return nil
}

// writeWhole writes a new file in the same folder and renames it at the end, so that there is never half a document.
func writeWhole(path string, data []byte) (err error) {
	if there, err := os.Stat(path); err == nil && there.IsDir() {
		return fmt.Errorf("write the document: %s is a directory: name a file in it", path)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		if failed := new(os.PathError); errors.As(err, &failed) {
			err = failed.Err // its path is the temporary one, which nobody asked for
		}
		return fmt.Errorf("write the document to %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = temporary.Close()
			_ = os.Remove(temporary.Name())
			err = fmt.Errorf("write the document: %w", err)
		}
	}()
	if _, err := temporary.Write(data); err != nil {
		return err
	}
	if err := temporary.Chmod(0o644); err != nil {
		return err
	}
	if err := temporary.Close(); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
