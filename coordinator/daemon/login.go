package daemon

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/clientconfig"
)

// loginCommand makes root of a coordinator's machine an operator when nobody has a certificate any more that could make a token.
func loginCommand() *cobra.Command {
	var path, name, client string
	command := &cobra.Command{
		Use:   "login",
		Short: "Make root of this coordinator's machine an operator, without a token",
		Long: "Make root of this coordinator's machine an operator, without a token: this machine's coordinator asks for one. It is the way\n" +
			"back when the certificates of all operators have ended, because nobody used the command line for a month. The\n" +
			"history tells of it.",
		Example: "  berth coordinator login",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			c, home, who, err := stoppedMember(path)
			if err != nil {
				return err
			}
			if err := home.checkCertificate(who, time.Now()); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(command.Context(), enrolTimeout)
			defer cancel()
			there, err := contextOf(client, who.ClusterID)
			if err != nil {
				return err
			}
			if there == "" {
				if there, err = freeContext(client, who.ClusterID); err != nil {
					return err
				}
			}
			address, _, _ := c.addresses()
			operator := cmp.Or(name, operatorOf(who.Name))
			if err := makeOperator(ctx, home, address, client, there, operator); err != nil {
				return fmt.Errorf("no operator could be made: %w", err)
			}
			fmt.Fprintf(command.OutOrStdout(), "logged in as operator/%s; context %q in %s is the current one\n", operator, there, client)
			return nil
		},
	}
	configFlag(command, &path)
	command.Flags().StringVar(&name, "name", "", "name of the operator (default: admin-COORDINATOR)")
	command.Flags().StringVar(&client, "client-config", clientconfig.SystemPath, "where to put the client configuration")
	return command
}
