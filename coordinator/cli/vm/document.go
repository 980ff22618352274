package vm

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func xmlCommand(a *term.App) *cobra.Command {
	var next bool
	cmd := &cobra.Command{
		Use: "xml NAME", Short: "Print a VM's libvirt document", Args: term.Arguments(1, "NAME"),
		Long: `Print a VM's libvirt document, without its secrets: of one that runs as its node has it now, of any other one what its
next start uses. Of a VM without a document of its own, the machine and the CPU are what the node makes of it.`,
		Example: `  berth vm xml web1
  berth vm xml web1 --next`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.GetVMDocument, &berthv1.GetVMDocumentRequest{Vm: args[0], Next: next})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: []string{"vm/" + answer.GetVm()},
				Text: func(p *term.Page, _ bool) {
					for line := range strings.Lines(answer.GetXml()) {
						p.Line("%s", strings.TrimRight(line, "\n"))
					}
				},
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.VMNames()),
	}
	cmd.Flags().BoolVar(&next, "next", false, "what its next start uses, also if it runs")
	return cmd
}

func editCommand(a *term.App) *cobra.Command {
	var (
		from   string
		dryRun bool
	)
	cmd := &cobra.Command{
		Use: "edit NAME", Short: "Change a VM's libvirt document for its next start", Args: term.Arguments(1, "NAME"),
		Long: `Change the libvirt document of a VM that has one, in $VISUAL or $EDITOR: one that was made with --xml, or adopted. Its
next start uses it; a guest that runs does not notice. What somebody else changes meanwhile is not overwritten, and a
document that is refused is kept in a file that is named.`,
		Example: `  berth vm edit web1
  berth vm edit web1 --from web1.xml --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("from") && from == "" {
				return term.Usagef(cmd, "--from: FILE is missing")
			}
			return edit(a, cmd, args[0], from, dryRun)
		},
		ValidArgsFunction: term.CompleteFirst(a.VMNames()),
	}
	cmd.Flags().StringVar(&from, "from", "", "the document is in this `FILE`, - for the standard input; no editor is opened")
	term.Complete(cmd, "from", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be changed, and change nothing")
	return cmd
}

func edit(a *term.App, cmd *cobra.Command, vm, from string, dryRun bool) error {
	before, err := term.AskOnce(a, cmd, term.Client.GetVMDocument, &berthv1.GetVMDocumentRequest{Vm: vm, Record: true})
	if err != nil {
		return err
	}
	var text, kept string
	if from != "" {
		text, err = readXML(cmd, from)
	} else {
		text, kept, err = edited(cmd, before)
	}
	if err != nil {
		return err
	}
	answer, err := term.AskOnce(a, cmd, term.Client.SetVMDocument, &berthv1.SetVMDocumentRequest{
		Vm: vm, Xml: text, Revision: before.GetRevision(), DryRun: dryRun, RequestId: term.RequestID(),
	})
	if err != nil {
		if kept != "" {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "what was edited is kept in %s: 'berth vm edit %s --from %s' tries it again\n", kept, vm, kept)
		}
		return err
	}
	if kept != "" {
		_ = os.Remove(kept) // it is of no use any more
	}
	a.Cautions(cmd.ErrOrStderr(), answer.GetWarnings())
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{"vm/" + answer.GetVm()},
		Text: func(p *term.Page, _ bool) {
			lines := differing(before.GetXml(), text)
			switch {
			case len(lines) == 0:
				p.Line("vm/%s: nothing to change", answer.GetVm())
			case dryRun:
				p.Line("vm/%s would be changed", answer.GetVm())
			case answer.GetWaits():
				p.Line("vm/%s changed: its next start uses that", answer.GetVm())
			default:
				p.Line("vm/%s changed", answer.GetVm())
			}
			if dryRun {
				for _, line := range lines {
					p.Line("%s", line)
				}
			}
		},
	})
}

// edited is what somebody makes of a document in an editor, and the file that has it.
func edited(cmd *cobra.Command, before *berthv1.GetVMDocumentResponse) (text, path string, err error) {
	failed := func(err error) (string, string, error) {
		return "", "", term.Failf(rpc.Invalid, "name an editor in $EDITOR, or give the document with --from FILE", "edit the document: %w", err)
	}
	file, err := os.CreateTemp("", "berth-"+before.GetVm()+"-*.xml")
	if err != nil {
		return failed(err)
	}
	_, err = file.WriteString(before.GetXml())
	if err := cmp.Or(err, file.Close()); err != nil {
		return failed(err)
	}
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	run := exec.CommandContext(cmd.Context(), "sh", "-c", editor+` "$1"`, "sh", file.Name()) // it may have arguments of its own
	run.Stdin, run.Stdout, run.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := run.Run(); err != nil {
		return failed(fmt.Errorf("%s: %w", editor, err))
	}
	text, err = readXML(cmd, file.Name())
	return text, file.Name(), err
}

// differing are the lines between which two texts differ: those of the first, then those of the second.
func differing(before, after string) (lines []string) {
	if before == after {
		return nil
	}
	old, fresh := strings.Split(before, "\n"), strings.Split(after, "\n")
	for len(old) > 0 && len(fresh) > 0 && old[0] == fresh[0] {
		old, fresh = old[1:], fresh[1:]
	}
	for len(old) > 0 && len(fresh) > 0 && old[len(old)-1] == fresh[len(fresh)-1] {
		old, fresh = old[:len(old)-1], fresh[:len(fresh)-1]
	}
	for _, line := range old {
		lines = append(lines, "- "+line)
	}
	for _, line := range fresh {
		lines = append(lines, "+ "+line)
	}
	return lines
}
