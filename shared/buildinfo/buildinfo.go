// Package buildinfo says which build of Berth is running.
package buildinfo

import (
	"runtime/debug"
	"sync"
)

// version is set by the release build: -ldflags "-X berth/shared/buildinfo.version=1.2.3".
var version string

// Version is the release version, or what the Go toolchain recorded of the checkout, or "devel".
func Version() string { return known() }

// known is read once: what the toolchain recorded is a text that takes longer to read than most of what the version is written into.
var known = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return pick(version, info)
})

func pick(release string, info *debug.BuildInfo) string {
	switch {
	case release != "":
		return release
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	revision, modified := "", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			modified = "+modified"
		}
	}
	if len(revision) > 12 {
		revision = revision[:12]
	}
	if revision == "" {
		return "devel"
	}
	return "devel-" + revision + modified
}
