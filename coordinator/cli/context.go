package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/clientconfig"
	"berth/shared/pki"
	"berth/shared/rpc"
)

func (a *app) contextCommand() *cobra.Command {
	return noun("context COMMAND", "See and choose the cluster that commands speak to", `
A context is one cluster as you know it: its coordinators and your certificate there. 'berth login' adds one.`,
		a.contextListCommand(), a.contextUseCommand(), a.contextShowCommand())
}

// contextView is a context as it is shown. It is no message of the API, because the API knows nothing of contexts.
type contextView struct {
	Name         string   `json:"name"`
	Current      bool     `json:"current"`
	Coordinators []string `json:"coordinators"`
	Identity     string   `json:"identity,omitempty"`
	ClusterID    string   `json:"clusterId,omitempty"`
	Expires      string   `json:"expires,omitempty"` // date
	Problem      string   `json:"problem,omitempty"`
	File         string   `json:"file"`
	CA           string   `json:"ca"`
	Certificate  string   `json:"certificate"`
	Key          string   `json:"key"`
}

func (a *app) viewContext(config *clientconfig.Config, name, file string) contextView {
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
	certificate, err := readCertificate(context.Certificate)
	if err != nil {
		view.Problem = err.Error()
		return view
	}
	view.Expires = certificate.NotAfter.In(a.now().Location()).Format("2006-01-02")
	if a.now().After(certificate.NotAfter) {
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

func (a *app) clientConfiguration() (*clientconfig.Config, string, error) {
	config, file, err := clientconfig.Find(clientconfig.Places(a.clientConfig, a.env))
	if err != nil {
		return nil, "", failf(rpc.Invalid, loginStep, "%w", err)
	}
	return config, file, nil
}

func (a *app) contextListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List contexts; the current one has a star", Args: arguments(0),
		Example: `  berth context list`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, file, err := a.clientConfiguration()
			if err != nil {
				return err
			}
			views := make([]contextView, 0, len(config.Contexts))
			rows := make([][]string, 0, len(config.Contexts))
			for _, name := range config.Names() {
				view := a.viewContext(config, name, file)
				star := ""
				if view.Current {
					star = "*"
				}
				views = append(views, view)
				rows = append(rows, []string{
					star, view.Name, or(strings.Join(view.Coordinators, ","), none),
					or(view.Identity, none), or(view.Expires, none), view.Problem,
				})
			}
			headings := []string{"", "NAME", "COORDINATORS", "IDENTITY", "EXPIRES", "PROBLEM"}
			return a.printLocal(cmd, views, config.Names(), func(p *page, _ bool) { p.table(headings, rows) })
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

func (a *app) contextUseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Make a context the current one", Args: arguments(1, "NAME"),
		Example: `  berth context use prod`,
		RunE: func(cmd *cobra.Command, args []string) error {
			config, file, err := a.clientConfiguration()
			if err != nil {
				return err
			}
			if _, _, err := config.Context(args[0], file); err != nil {
				return failf(rpc.NotFound, "see 'berth context list'", "%w", err)
			}
			config.Current = args[0]
			if err := config.Save(file); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "context %q in %s is the current one\n", args[0], file)
			return nil
		},
		ValidArgsFunction: first(a.contextNames),
	}
}

func (a *app) contextShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show [NAME]", Short: "Show a context: the current one, or that of a name", Args: arguments(0, "NAME"),
		Example: `  berth context show
  berth context show prod -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			config, file, err := a.clientConfiguration()
			if err != nil {
				return err
			}
			wanted := or(a.context, a.env(contextVariable))
			if len(args) > 0 {
				wanted = args[0]
			}
			_, name, err := config.Context(wanted, file)
			if err != nil {
				return failf(rpc.NotFound, "see 'berth context list'", "%w", err)
			}
			view := a.viewContext(config, name, file)
			return a.printLocal(cmd, view, []string{name}, func(p *page, _ bool) {
				p.line("context %s", view.Name)
				p.fields("  ",
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
		ValidArgsFunction: first(a.contextNames),
	}
}
