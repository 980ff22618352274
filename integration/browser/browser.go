// Package browser starts a real Chromium, Debian's package, for tests and measurements of the console.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/chromedp/chromedp"
)

// Launch starts Chromium with its profile in a folder. It asks nobody for anything, and takes each certificate. What it gives is the
// parent of the contexts of its tabs. End ends it.
func Launch(ctx context.Context, profile string) (chromium context.Context, end func() error, err error) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		return nil, nil, fmt.Errorf("%w: 'make deps' installs it (Debian)", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile), chromedp.IgnoreCertErrors,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
	)
	allocator, release := chromedp.NewExecAllocator(context.WithoutCancel(ctx), options...)
	chromium, cancel := chromedp.NewContext(allocator)
	end = func() error {
		defer release()
		defer cancel()
		if err := chromedp.Cancel(chromium); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("end Chromium: %w", err)
		}
		return nil
	}
	if err := chromedp.Do(chromium); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start Chromium: %w", err), end())
	}
	return chromium, end, nil
}
