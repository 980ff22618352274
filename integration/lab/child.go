package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

// rolePrefix marks a process of a lab in its first argument, which also makes it easy to recognise in a process list.
const rolePrefix = "berth-lab:"

// The roles in which a program that raises a lab starts itself again.
const (
	roleReaper  = rolePrefix + "reaper"  // NAME: owns the lab's directory, starts the lab's init
	roleInit    = rolePrefix + "init"    // DIR: process 1 of the lab
	roleLaunch  = rolePrefix + "launch"  // DIR MACHINE: inside the lab, starts a machine
	roleMachine = rolePrefix + "machine" // DIR MACHINE: process 1 of a machine
	roleWire    = rolePrefix + "wire"    // DIR PORT DELAY LOSS: inside the lab, a slow or lossy cable
)

// Child turns this process into a process of a lab if a lab has started it as one; then it never returns.
// It has to be the first call of main, and of TestMain, in every program that raises a lab.
func Child() {
	if !strings.HasPrefix(os.Args[0], rolePrefix) {
		return
	}
	var err error
	switch role, args := os.Args[0], os.Args[1:]; {
	case role == roleReaper && len(args) == 1:
		err = runReaper(args[0])
	case role == roleInit && len(args) == 1:
		err = runLabInit()
	case role == roleLaunch && len(args) == 2:
		err = runLaunch(args[0], args[1])
	case role == roleMachine && len(args) == 2:
		err = runMachineInit(args[0], args[1])
	case role == roleWire && len(args) == 4:
		err = runWire(args[1], args[2], args[3])
	default:
		err = fmt.Errorf("unknown role with %d arguments", len(args))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		os.Exit(1)
	}
	os.Exit(0)
}

// namespaces is what the lab and every machine in it have of their own.
const namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// reapForever is the duty of process 1: it collects every orphan that ends.
func reapForever() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	for {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil || pid <= 0 {
				break
			}
		}
		<-ended
	}
}

// run executes a command and puts what it said into the error.
func run(name string, args ...string) error {
	return runInput("", name, args...)
}

// runInput is run with a text on standard input.
func runInput(input, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}
