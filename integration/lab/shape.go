package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"berth/shared/units"
)

// Shape is what a host believes about itself. Its free memory is Memory minus Reserve minus the resident memory of its
// QEMU processes, written every half second.
type Shape struct {
	Memory  units.Bytes // MemTotal
	Reserve units.Bytes // taken by everything that is not a guest
	// Load is added to the load averages, which otherwise follow the CPU time that the host's own processes use.
	Load float64
}

const (
	shapeFile   = "shape.json" // in the machine's directory
	shapePeriod = 500 * time.Millisecond
)

// shaper rewrites the files that stand in for /proc/meminfo and /proc/loadavg. It runs in the machine's init.
type shaper struct {
	input    string
	meminfo  *os.File
	nodeinfo *os.File // the same for NUMA node 0, nil where the kernel shows none
	loadavg  *os.File
	shape    Shape
	cpuTime  time.Duration
	at       time.Time
	average  [3]float64
}

// newShaper puts the files in place. Machines other than hosts keep the real ones.
func newShaper(input string, host bool) (*shaper, error) {
	s := &shaper{input: input, at: time.Now()}
	if !host {
		return s, nil
	}
	var err error
	if s.meminfo, err = shadow("/proc/meminfo"); err != nil {
		return nil, err
	}
	if s.loadavg, err = shadow("/proc/loadavg"); err != nil {
		return nil, err
	}
	if _, missing := os.Stat(nodeMeminfo); missing == nil {
		if s.nodeinfo, err = shadow(nodeMeminfo); err != nil {
			return nil, err
		}
	}
	s.cpuTime, _ = processTimes()
	return s, s.write()
}

const nodeMeminfo = "/sys/devices/system/node/node0/meminfo"

// shadow binds a writable file over one of the kernel's. It is not empty for a moment, so that no reader can fail.
func shadow(path string) (*os.File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(stateDir, strings.ReplaceAll(strings.Trim(path, "/"), "/", "-")))
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(text); err != nil {
		return nil, err
	}
	return file, syscall.Mount(file.Name(), path, "", syscall.MS_BIND, "")
}

// loop never returns. A failed write is said once a period in the machine's log; there is nobody else to tell.
func (s *shaper) loop() {
	if s.meminfo == nil {
		return
	}
	for {
		time.Sleep(shapePeriod)
		if err := s.write(); err != nil {
			fmt.Fprintln(os.Stderr, "shape:", err)
		}
	}
}

func (s *shaper) write() error {
	text, err := os.ReadFile(s.input)
	if err != nil {
		return err
	}
	// A half written file is read again next time.
	var shape Shape
	if json.Unmarshal(text, &shape) == nil {
		s.shape = shape
	}
	total, resident := processTimes()
	now := time.Now()
	s.average = decay(s.average, float64(total-s.cpuTime)/float64(now.Sub(s.at)), now.Sub(s.at))
	s.cpuTime, s.at = total, now

	free := max(0, s.shape.Memory-s.shape.Reserve-resident)
	if err := overwrite(s.meminfo, meminfo("", s.shape.Memory, free)); err != nil {
		return err
	}
	if s.nodeinfo != nil {
		if err := overwrite(s.nodeinfo, meminfo("Node 0 ", s.shape.Memory, free)); err != nil {
			return err
		}
	}
	return overwrite(s.loadavg, loadavg(s.average, s.shape.Load))
}

// overwrite replaces a file's text in place with one write, so that a reader sees the old or the new one. The texts
// have a fixed width; the length changes only the first time.
func overwrite(file *os.File, text string) error {
	if _, err := file.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return file.Truncate(int64(len(text)))
}

// decay moves the load averages over 1, 5 and 15 minutes towards the number of CPUs in use during the period.
func decay(average [3]float64, inUse float64, period time.Duration) [3]float64 {
	for i, window := range [3]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute} {
		keep := math.Exp(-float64(period) / float64(window))
		average[i] = average[i]*keep + max(0, inUse)*(1-keep)
	}
	return average
}

// loadavg has the format of /proc/loadavg, padded to a fixed width. The process figures at its end are of no use here.
func loadavg(average [3]float64, offset float64) string {
	text := fmt.Sprintf("%.2f %.2f %.2f 1/100 1", average[0]+offset, average[1]+offset, average[2]+offset)
	return fmt.Sprintf("%-40s\n", text)
}

// meminfo has the format of /proc/meminfo with the lines that libvirt, gopsutil and free(1) read. With the prefix
// "Node 0 " it is the file of that NUMA node.
func meminfo(prefix string, total, free units.Bytes) string {
	var b strings.Builder
	line := func(name string, value units.Bytes) {
		fmt.Fprintf(&b, "%s%-16s %10d kB\n", prefix, name+":", value/units.KiB)
	}
	line("MemTotal", total)
	line("MemFree", free)
	if prefix == "" {
		line("MemAvailable", free)
	} else {
		line("MemUsed", total-free)
	}
	for _, name := range []string{
		"Buffers", "Cached", "SwapCached", "Active", "Inactive", "SwapTotal", "SwapFree", "Shmem", "Slab", "SReclaimable",
	} {
		line(name, 0)
	}
	return b.String()
}

// processTimes adds up the CPU time of all processes of this machine, and the resident memory of its guests.
func processTimes() (cpu time.Duration, guests units.Bytes) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		cpu += time.Duration(statField(text, 14)+statField(text, 15)) * time.Second / clockTicks
		if bytes.Contains(text, []byte(" (qemu-system")) {
			guests += units.Bytes(statField(text, 24)) * units.Bytes(os.Getpagesize())
		}
	}
	return cpu, guests
}

// clockTicks is USER_HZ, which is 100 on every Linux that Go runs on.
const clockTicks = 100

// statField is a numeric field of /proc/PID/stat by its number in proc(5): 14 and 15 are the user and system time and
// 22 the start in clock ticks, 24 the resident pages. The second field may have blanks, so counting begins after it.
func statField(text []byte, number int) int64 {
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < number-2 {
		return 0
	}
	value, _ := strconv.ParseInt(fields[number-3], 10, 64)
	return value
}
