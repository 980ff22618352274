package term

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/cli/clientconfig"
	"berth/shared/buildinfo"
)

// App is one invocation.
type App struct {
	Version string
	Now     func() time.Time
	Env     func(string) string
	// Patience is how long to look for a coordinator that answers.
	Patience time.Duration
	// Busy is how long coordinators are asked again that have too much to do.
	Busy time.Duration
	// Limit is how long a coordinator has for one answer, once connected.
	Limit time.Duration
	// NextInterrupt makes a context that ends with the next interrupt from now on.
	NextInterrupt func(context.Context) (context.Context, context.CancelFunc)
	// Notes is where people are told what takes long.
	Notes io.Writer

	// Flags of every command.
	ClientConfig string
	Context      string
	coordinators []string
	Format       Format
	NoHeaders    bool
	Quiet        bool

	traces *traces // nil: none are sent, or nobody was spoken to

	renewal   sync.Mutex // of the two below
	renewing  *beside    // the certificate; nil: it is not
	unrenewed error      // what to say of it
}

// New is an invocation on this machine, of a release; without one, of the build's.
func New(version string) *App {
	if version == "" {
		version = buildinfo.Version()
	}
	return &App{
		Version: version, Now: time.Now, Env: os.Getenv, Patience: connectPatience, Busy: busyPatience, Limit: CallLimit,
		NextInterrupt: nextInterrupt, Format: AsTable, Notes: io.Discard,
	}
}

// GlobalFlags adds the flags that every command has.
func (a *App) GlobalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.VarP(&a.Format, "output", "o", "`FORMAT` of the result: table, wide, json, yaml or name")
	flags.BoolVar(&a.NoHeaders, "no-headers", false, "leave out the headings of tables")
	flags.BoolVarP(&a.Quiet, "quiet", "q", false, "no progress and no notes on the standard error")
	flags.StringVar(&a.ClientConfig, "client-config", "",
		"client configuration `FILE` ("+clientconfig.Variable+"; default ~/.config/berth/client.yaml, then "+clientconfig.SystemPath+")")
	flags.StringVar(&a.Context, "context", "", "`NAME` of the context to use ("+ContextVariable+"; default the current one)")
	flags.StringSliceVar(&a.coordinators, "coordinator", nil,
		"`HOST[:PORT]` of coordinators to ask, instead of the context's ("+CoordinatorVariable+")")
	Complete(root, "output", CompleteFixed(formats...))
	Complete(root, "context", a.ContextNames)
	Complete(root, "coordinator", cobra.NoFileCompletions)
}

const connectPatience = 5 * time.Second // to find a coordinator that answers, all of them together

// Since prints how long ago something was.
func (a *App) Since(t *timestamppb.Timestamp) string {
	if t == nil {
		return None
	}
	return age(a.Now().Sub(t.AsTime()))
}

// At prints a time in the reader's zone.
func (a *App) At(t *timestamppb.Timestamp) string {
	if t == nil {
		return None
	}
	return t.AsTime().In(a.Now().Location()).Format("2006-01-02 15:04:05")
}
