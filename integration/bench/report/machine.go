package report

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// idleLoad is the load average above which others may have disturbed the figures.
const idleLoad = 0.5

// DescribeMachine says what the figures were taken on, and what one durable write to the disk of dir costs: the floor
// under every commit.
func DescribeMachine(dir string) (string, error) {
	syncs, err := timeSyncs(filepath.Join(dir, "syncs"), 300)
	if err != nil {
		return "", fmt.Errorf("time the disk: %w", err)
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", err
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "", err
	}
	var average float64
	if _, err := fmt.Sscan(string(load), &average); err != nil {
		return "", fmt.Errorf("read /proc/loadavg: %w", err)
	}
	text := fmt.Sprintf("%s, %d CPUs, %s, Linux %s, %s, load %.2f\nfdatasync of 4 KiB: %s",
		time.Now().Format("2006-01-02 15:04"), runtime.NumCPU(), cpuModel(), unix.ByteSliceToString(name.Release[:]),
		runtime.Version(), average, syncs.Latency())
	if average > idleLoad {
		text += "\nthis machine was busy before: do not quote what follows"
	}
	return text, nil
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	_, line, _ := strings.Cut(string(text), "model name")
	line, _, _ = strings.Cut(line, "\n")
	if model := strings.Trim(line, "\t: "); model != "" {
		return model
	}
	return runtime.GOARCH
}

// timeSyncs overwrites one block again and again, as a log does in a file that has its size.
func timeSyncs(path string, n int) (Figures, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	block := make([]byte, 4096)
	var took Figures
	for range n + 1 {
		begun := time.Now()
		if _, err := file.WriteAt(block, 0); err != nil {
			return nil, err
		}
		if err := unix.Fdatasync(int(file.Fd())); err != nil {
			return nil, err
		}
		took.Add(time.Since(begun))
	}
	return took[1:], nil // the first one made the file
}
