package scrape

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"berth/shared/buildinfo"
	"berth/shared/exposition"
)

// Figures of the process, by the names that Prometheus' own libraries use.
var (
	buildFamily = exposition.Family{
		Name: "berth_build_info", Help: "1; the release of this program is a label", Type: exposition.Gauge, Labels: []string{"version"},
	}
	cpuFamily = exposition.Family{
		Name: "process_cpu_seconds_total", Help: "CPU time that this process has used", Type: exposition.Counter,
	}
	residentFamily = exposition.Family{
		Name: "process_resident_memory_bytes", Help: "Memory of the machine that this process has", Type: exposition.Gauge,
	}
	filesFamily   = exposition.Family{Name: "process_open_fds", Help: "Files that this process has open", Type: exposition.Gauge}
	startedFamily = exposition.Family{
		Name: "process_start_time_seconds", Help: "When this process was started, in seconds since 1970", Type: exposition.Gauge,
	}
	goroutinesFamily = exposition.Family{Name: "go_goroutines", Help: "Goroutines that there are", Type: exposition.Gauge}
)

// started is when this process was, as near as it matters.
var started = time.Now()

// Families are those that every page of a process has.
func Families() []*exposition.Family {
	return []*exposition.Family{&buildFamily, &cpuFamily, &residentFamily, &filesFamily, &startedFamily, &goroutinesFamily}
}

func writeProcess(page *exposition.Page) {
	page.Sample(&buildFamily, 1, buildinfo.Version())
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) == nil {
		page.Sample(&cpuFamily, time.Duration(used.Utime.Nano()+used.Stime.Nano()).Seconds())
	}
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := bytes.Fields(text); len(fields) > 1 {
			if pages, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				page.Sample(&residentFamily, float64(pages*int64(os.Getpagesize())))
			}
		}
	}
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		page.Sample(&filesFamily, float64(len(files)))
	}
	page.Sample(&startedFamily, float64(started.UnixMilli())/1e3)
	page.Sample(&goroutinesFamily, float64(runtime.NumGoroutine()))
}
