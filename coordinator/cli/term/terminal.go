package term

import (
	"context"
	"os"
	"os/signal"
	"time"

	"golang.org/x/term"
)

// nextInterrupt is a context that ends with the next interrupt from now on.
func nextInterrupt(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt)
}

// IsTerminal tells whether a stream is a terminal, where progress can be drawn as a bar.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// LineEvery is the time between two lines of progress where there is no terminal.
const LineEvery = 2 * time.Second
