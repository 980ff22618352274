package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/estate"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// maxDocument is the longest estate that is read: what one request may hold.
const maxDocument = 4 * units.MiB

// standardInput is what problems call a document that came from there.
const standardInput = "<stdin>"

func (a *app) applyCommand() *cobra.Command {
	var (
		file               string
		dryRun, prune, yes bool
	)
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Make the estate what a document says", Args: arguments(0),
		Long: `Make the estate what a document says: policies, clusters, billing entities, offers, customers, VDCs, images,
networks, disks, NICs, affinity groups, what is set on nodes, and VMs. 'berth export' writes such a document.

It is applied as a whole or not at all; each problem is shown with its line. VMs are declared, and never started,
stopped or moved by this. --dry-run shows the difference and changes nothing: + is declared anew, ~ changes, - is
deleted.

` + indented(estate.Schema()),
		Example: `  berth apply -f estate.yaml --dry-run
  berth apply -f estate.yaml
  berth apply -f estate.yaml --prune --yes
  berth export | sed 's/ram_ratio: 1.5/ram_ratio: 2/' | berth apply -f -`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return Usagef(cmd, "-f FILE is missing, - for the standard input")
			}
			document, err := readDocument(cmd, file)
			if err != nil {
				return err
			}
			name := file
			if file == "-" {
				name = standardInput
			}
			return a.apply(cmd, &berthv1.ApplyEstateRequest{
				Document: document, File: name, DryRun: dryRun, Prune: prune, RequestId: requestID(),
			}, yes)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "the document: a `FILE`, - for the standard input")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the difference, change nothing")
	cmd.Flags().BoolVar(&prune, "prune", false, "delete what the document does not name")
	confirmFlag(cmd, &yes)
	complete(cmd, "file", files)
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
			return nil, failf(rpc.Invalid, "check the name of the file", "read the estate: %w", err)
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, int64(maxDocument)+1))
	switch {
	case err != nil:
		return nil, failf(rpc.Invalid, "check the file", "read the estate: %w", err)
	case len(data) > int(maxDocument):
		return nil, failf(rpc.Invalid, "split it: what a document does not name stays", "the estate in %s is longer than %v", path, maxDocument)
	case len(strings.TrimSpace(string(data))) == 0:
		return nil, failf(rpc.Invalid, "check that it is the right file", "the estate in %s is empty", path)
	}
	return data, nil
}

func (a *app) apply(cmd *cobra.Command, request *berthv1.ApplyEstateRequest, yes bool) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	if request.GetPrune() && !request.GetDryRun() && !yes {
		if err := a.confirmPrune(cmd, s, request); err != nil {
			return err
		}
	}
	answer, err := ask(cmd.Context(), s, repeatable, client.ApplyEstate, request)
	if err != nil {
		return err
	}
	a.warnings(cmd.ErrOrStderr(), answer.GetWarnings())
	return a.print(cmd, result{
		message: answer, names: prefixed("", answer.GetChanges(), changeRef),
		text: func(p *page, _ bool) { changesText(p, answer) },
	})
}

// confirmPrune asks only where something would be deleted, and names it.
func (a *app) confirmPrune(cmd *cobra.Command, s *session, request *berthv1.ApplyEstateRequest) error {
	answer, err := ask(cmd.Context(), s, repeatable, client.ApplyEstate, &berthv1.ApplyEstateRequest{
		Document: request.GetDocument(), File: request.GetFile(), Prune: true, DryRun: true,
	})
	if err != nil {
		return err
	}
	doomed := slices.DeleteFunc(slices.Clone(answer.GetChanges()), func(c *berthv1.EstateChange) bool { return c.GetAction() != deleted })
	if len(doomed) == 0 {
		return nil
	}
	named := strings.Join(prefixed("", doomed[:min(len(doomed), briefNodes)], changeRef), ", ")
	if more := len(doomed) - briefNodes; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return confirm(cmd, false, fmt.Sprintf("Delete %s?", named))
}

// The actions of a change.
const (
	created = "create"
	changes = "change"
	deleted = "delete"
)

func changeRef(c *berthv1.EstateChange) string { return c.GetKind() + "/" + c.GetName() }

func changesText(p *page, answer *berthv1.ApplyEstateResponse) {
	if len(answer.GetChanges()) == 0 {
		p.line("nothing to change")
		return
	}
	signs := map[string]string{created: "+", changes: "~", deleted: "-"}
	counts := map[string]int{}
	for _, change := range answer.GetChanges() {
		counts[change.GetAction()]++
		p.line("%s %s", or(signs[change.GetAction()], "?"), changeRef(change))
		fieldChanges(p, change.GetFields())
	}
	said := "%d created, %d changed, %d deleted"
	if answer.GetDryRun() {
		said = "dry run, nothing was changed: %d to create, %d to change, %d to delete"
	}
	p.line(said, counts[created], counts[changes], counts[deleted])
}

// fieldChanges writes what is different about one thing.
func fieldChanges(p *page, fields []*berthv1.FieldChange) {
	for _, field := range fields {
		sign, value := "~", field.GetFrom()+" -> "+field.GetTo()
		switch {
		case field.GetFrom() == "":
			sign, value = "+", field.GetTo()
		case field.GetTo() == "":
			sign, value = "-", field.GetFrom()
		}
		if field.GetNote() != "" {
			value += " (" + field.GetNote() + ")"
		}
		p.line("    %s %s: %s", sign, field.GetField(), value)
	}
}

// writeProblems shows all that is wrong with a document or a change, each with its place as compilers give it. It stands in
// for the message, which has the same in one text.
func writeProblems(w io.Writer, problems []*berthv1.Problem) {
	switch p := (&page{out: w}); len(problems) {
	case 0:
	case 1:
		p.line("berth: %s", problemLine(problems[0]))
	default:
		p.line("berth: %d problems", len(problems))
		for _, problem := range problems {
			p.line("%s", problemLine(problem))
		}
	}
}

func problemLine(problem *berthv1.Problem) string {
	place := problem.GetFile()
	if problem.GetLine() > 0 {
		place = fmt.Sprintf("%s:%d", place, problem.GetLine())
	}
	var parts []string
	for _, part := range []string{place, problem.GetSubject(), problem.GetMessage(), problem.GetNextStep()} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}
