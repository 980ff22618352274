package access

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/clientconfig"
	"berth/coordinator/cli/term"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// ContextCommand is the noun context.
func ContextCommand(a *term.App) *cobra.Command {
	return term.Noun("context COMMAND", "See and choose the cluster that commands speak to", `
A context is one cluster as you know it: its coordinators and your certificate there. 'berth login' adds one.`,
		contextListCommand(a), contextUseCommand(a), contextShowCommand(a))
}

// contextView is a context as it is shown. It is no message of the API, because the API knows nothing of contexts.
type contextView struct {
	Name         string   `json:"name"`
	Current      bool     `json:"current"`
	Coordinators []string `json:"coordinators"`
	Identity     string   `json:"identity,omitempty"`
	ClusterID    string   `json:"cluster_id,omitempty"`
	Expires      string   `json:"expires,omitempty"` // date
	Problem      string   `json:"problem,omitempty"`
	File         string   `json:"file"`
	CA           string   `json:"ca"`
	Certificate  string   `json:"certificate"`
	Key          string   `json:"key"`
}

func viewContext(a *term.App, config *clientconfig.Config, name, file string) contextView {
	view := contextView{Name: name, File: file}
	_, currentName, err := config.Context("", file)
	view.Current = err == nil && currentName == name
	context, _, err := config.Context(name, file)
	if err != nil {
		view.Problem = err.Error()
		return view
	}
	view.Coordinators = context.Coordinators
	view.CA, view.Certificate, view.Key = context.CA, context.Certificate, context.Key
	certificate, err := term.ReadCertificate(context.Certificate)
	if err != nil {
		view.Problem = err.Error()
		return view
	}
	view.Expires = certificate.NotAfter.In(a.Now().Location()).Format("2006-01-02")
	if a.Now().After(certificate.NotAfter) {
		view.Problem = "the certificate has expired"
	}
	identity, err := pki.IdentityOf(certificate)
	if err != nil {
		view.Problem = err.Error()
		return view
	}
	view.Identity, view.ClusterID = identity.String(), identity.ClusterID
	return view
}

func clientConfiguration(a *term.App) (*clientconfig.Config, string, error) {
	config, file, err := clientconfig.Find(clientconfig.Places(a.ClientConfig, a.Env))
	if err != nil {
		return nil, "", term.Failf(rpc.Invalid, term.LoginStep, "%w", err)
	}
	return config, file, nil
}

func contextListCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List contexts; the current one has a star", Args: term.Arguments(0),
		Example: `  berth context list`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, file, err := clientConfiguration(a)
			if err != nil {
				return err
			}
			views := make([]contextView, 0, len(config.Contexts))
			rows := make([][]string, 0, len(config.Contexts))
			for _, name := range config.Names() {
				view := viewContext(a, config, name, file)
				star := ""
				if view.Current {
					star = "*"
				}
				views = append(views, view)
				rows = append(rows, []string{
					star, view.Name, cmp.Or(strings.Join(view.Coordinators, ","), term.None),
					cmp.Or(view.Identity, term.None), cmp.Or(view.Expires, term.None), view.Problem,
				})
			}
			headings := []string{"", "NAME", "COORDINATORS", "IDENTITY", "EXPIRES", "PROBLEM"}
			return a.PrintLocal(cmd, views, config.Names(), func(p *term.Page, _ bool) { p.Table(headings, rows) })
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

func contextUseCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Make a context the current one", Args: term.Arguments(1, "NAME"),
		Example: `  berth context use prod`,
		RunE: func(cmd *cobra.Command, args []string) error {
			config, file, err := clientConfiguration(a)
			if err != nil {
				return err
			}
			if _, _, err := config.Context(args[0], file); err != nil {
				return term.Failf(rpc.NotFound, "see 'berth context list'", "%w", err)
			}
			config.Current = args[0]
			if err := config.Save(file); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "context %q in %s is the current one\n", args[0], file)
			return nil
		},
		ValidArgsFunction: term.CompleteFirst(a.ContextNames),
	}
}

func contextShowCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "show [NAME]", Short: "Show a context: the current one, or that of a name", Args: term.Arguments(0, "NAME"),
		Example: `  berth context show
  berth context show prod -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			config, file, err := clientConfiguration(a)
			if err != nil {
				return err
			}
			wanted := cmp.Or(a.Context, a.Env(term.ContextVariable))
			if len(args) > 0 {
				wanted = args[0]
			}
			_, name, err := config.Context(wanted, file)
			if err != nil {
				return term.Failf(rpc.NotFound, "see 'berth context list'", "%w", err)
			}
			view := viewContext(a, config, name, file)
			return a.PrintLocal(cmd, view, []string{name}, func(p *term.Page, _ bool) {
				p.Line("context %s", view.Name)
				p.Fields("  ",
					[2]string{"coordinators", strings.Join(view.Coordinators, ", ")},
					[2]string{"identity", view.Identity},
					[2]string{"cluster", view.ClusterID},
					[2]string{"expires", view.Expires},
					[2]string{"problem", view.Problem},
					[2]string{"file", view.File},
					[2]string{"CA", view.CA},
					[2]string{"certificate", view.Certificate},
					[2]string{"key", view.Key},
				)
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.ContextNames),
	}
}
