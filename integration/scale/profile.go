package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
)

// profile writes where the CPU goes while something is timed, each time into another file: between two of them all nodes tell how they
// are, and a profile of that as well would show little else. `go tool pprof` takes all the files and adds them up.
type profile struct {
	name string // of the files, without their numbers; empty: nothing is written
	made int
	file *os.File
}

func (p *profile) begin() (err error) {
	if p.name == "" {
		return nil
	}
	p.made++
	if p.file, err = os.Create(fmt.Sprintf("%s.%d", p.name, p.made)); err != nil {
		return err
	}
	return pprof.StartCPUProfile(p.file)
}

func (p *profile) end() error {
	if p.name == "" {
		return nil
	}
	pprof.StopCPUProfile()
	return p.file.Close()
}

// keepHeap writes what is on the heap into a file.
func keepHeap(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	runtime.GC()
	return errors.Join(pprof.Lookup("heap").WriteTo(file, 0), file.Close())
}
