package document

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/document"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// maxDocument is the longest estate that is read: what one request may hold.
const maxDocument = 16 * units.MiB

// estateLimit is how long the coordinators have for a whole estate: the largest takes seconds, and much longer on a busy machine.
const estateLimit = 2 * time.Minute

// ApplyCommand is the command apply.
func ApplyCommand(a *term.App) *cobra.Command {
	var (
		file               string
		dryRun, prune, yes bool
	)
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Make the estate what a document says", Args: term.Arguments(0),
		Long: `Make the estate what a document says: policies, clusters, billing entities, offers, customers, VDCs, images,
networks, disks, NICs, affinity groups, what is set on nodes, and VMs. 'berth export' writes such a document.

It is applied as a whole or not at all; each problem is shown with its line. VMs are declared, and never started,
stopped or moved by this. --dry-run shows the difference and changes nothing: + is declared anew, ~ changes, - is
deleted.

` + indented(document.Schema()),
		Example: `  berth apply -f estate.yaml --dry-run
  berth apply -f estate.yaml
  berth apply -f estate.yaml --prune --yes
  berth export | sed 's/ram_ratio: 1.5/ram_ratio: 2/' | berth apply -f -`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return term.Usagef(cmd, "-f FILE is missing, - for the standard input")
			}
			document, err := readDocument(cmd, file)
			if err != nil {
				return err
			}
			name := file
			if file == "-" {
				name = term.StandardInput
			}
			return apply(a, cmd, &berthv1.ApplyEstateRequest{
				Document: document, File: name, DryRun: dryRun, Prune: prune, RequestId: term.RequestID(),
			}, yes)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "the document: a `FILE`, - for the standard input")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the difference, change nothing")
	cmd.Flags().BoolVar(&prune, "prune", false, "delete what the document does not name")
	term.ConfirmFlag(cmd, &yes)
	term.Complete(cmd, "file", term.CompleteFiles)
	return cmd
}

// indented sets a text off, so that manual pages keep its lines.
func indented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text)) {
		if line != "\n" {
			line = "    " + line
		}
		out.WriteString(line)
	}
	return out.String()
}

func readDocument(cmd *cobra.Command, path string) ([]byte, error) {
	in := cmd.InOrStdin()
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, term.Failf(rpc.Invalid, "check the name of the file", "read the estate: %w", err)
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, int64(maxDocument)+1))
	switch {
	case err != nil:
		return nil, term.Failf(rpc.Invalid, "check the file", "read the estate: %w", err)
	case len(data) > int(maxDocument):
		size := fmt.Sprintf("more than %d", maxDocument)
		if file, err := os.Stat(path); path != "-" && err == nil && file.Mode().IsRegular() {
			size = strconv.FormatInt(file.Size(), 10)
		}
		return nil, term.Failf(rpc.Invalid, "split it: what a document does not name stays",
			"the estate in %s has %s bytes, at most %v are read", path, size, maxDocument)
	case len(strings.TrimSpace(string(data))) == 0:
		return nil, term.Failf(rpc.Invalid, "check that it is the right file", "the estate in %s is empty", path)
	}
	return data, nil
}

func apply(a *term.App, cmd *cobra.Command, request *berthv1.ApplyEstateRequest, yes bool) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	if request.GetPrune() && !request.GetDryRun() && !yes {
		if err := confirmPrune(cmd, s, request); err != nil {
			return err
		}
	}
	answer, err := term.AskFor(cmd.Context(), s, estateLimit, term.Client.ApplyEstate, request)
	if err != nil {
		return err
	}
	a.Warnings(cmd.ErrOrStderr(), answer.GetWarnings())
	return a.Print(cmd, term.Result{
		Message: answer, Names: term.Prefixed("", answer.GetChanges(), changeRef),
		Text: func(p *term.Page, _ bool) { changesText(p, answer) },
	})
}

// confirmPrune asks only where something would be deleted, and names it.
func confirmPrune(cmd *cobra.Command, s *term.Session, request *berthv1.ApplyEstateRequest) error {
	answer, err := term.AskFor(cmd.Context(), s, estateLimit, term.Client.ApplyEstate, &berthv1.ApplyEstateRequest{
		Document: request.GetDocument(), File: request.GetFile(), Prune: true, DryRun: true,
	})
	if err != nil {
		return err
	}
	doomed := slices.DeleteFunc(slices.Clone(answer.GetChanges()), func(c *berthv1.EstateChange) bool { return c.GetAction() != deleted })
	if len(doomed) == 0 {
		return nil
	}
	named := units.Some(term.Prefixed("", doomed, changeRef), term.Brief, ", ")
	return term.Confirm(cmd, false, fmt.Sprintf("Delete %s?", named))
}

// The actions of a change.
const (
	created = "create"
	changes = "change"
	deleted = "delete"
)

func changeRef(c *berthv1.EstateChange) string { return c.GetKind() + "/" + c.GetName() }

func changesText(p *term.Page, answer *berthv1.ApplyEstateResponse) {
	if len(answer.GetChanges()) == 0 {
		p.Line("nothing to change")
		return
	}
	signs := map[string]string{created: "+", changes: "~", deleted: "-"}
	counts := map[string]int{}
	for _, change := range answer.GetChanges() {
		counts[change.GetAction()]++
		p.Line("%s %s", cmp.Or(signs[change.GetAction()], "?"), changeRef(change))
		term.FieldChanges(p, change.GetFields())
	}
	said := "%d created, %d changed, %d deleted"
	if answer.GetDryRun() {
		said = "dry run, nothing was changed: %d to create, %d to change, %d to delete"
	}
	p.Line(said, counts[created], counts[changes], counts[deleted])
}
