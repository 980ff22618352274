package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// dirPrefix starts the name of every lab's directory. Labs live in /tmp and nowhere else: machines see it as it is,
// while /var and /run are their own.
const dirPrefix = "/tmp/berth-lab-"

// What the owner and the reaper say to each other over the pipes.
const (
	sayReady = "ready "  // reaper to owner: the lab's init runs; the directory follows
	sayKeep  = "keep\n"  // owner to reaper: stay when I am gone
	sayUp    = "up\n"    // an init to the one that started it
	lockFile = "reaper"  // in the lab's directory, locked by the reaper while it lives
	initFile = "machine" // in a machine's directory, its description
)

// runReaper makes the lab's directory and its init, and removes both as soon as the owner goes away (standard input
// ends), asks for it (SIGTERM), or the lab's init dies. A lab that is kept outlives its owner.
func runReaper(name string) (err error) {
	// The parent-death signal below follows the thread that starts the child.
	runtime.LockOSThread()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	// Writing to an owner that has died must fail, not kill this process before it has cleaned up.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	dir, err := os.MkdirTemp(filepath.Dir(dirPrefix), filepath.Base(dirPrefix)+name+"-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	lock, err := holdLock(filepath.Join(dir, lockFile))
	if err != nil {
		return err
	}
	defer lock.Close()

	initProcess := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{roleInit, dir}, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL},
	}
	if err := startAndWaitReady(initProcess, nil); err != nil {
		return err
	}
	dead := make(chan struct{})
	go func() {
		_ = initProcess.Wait()
		close(dead)
	}()
	// Killing process 1 ends all processes of the namespace; Wait returns when the last of them is gone.
	defer func() {
		_ = initProcess.Process.Kill()
		<-dead
	}()

	fmt.Println(sayReady + dir)
	owner := make(chan bool, 1)
	go func() { owner <- ownerKeeps(os.Stdin) }()
	for {
		select {
		case keeps := <-owner:
			if !keeps {
				return nil
			}
		case <-stop:
			return nil
		case <-dead:
			return nil
		}
	}
}

// ownerKeeps reads until the owner closes the pipe or dies. It is true if the owner has asked to keep the lab.
func ownerKeeps(pipe io.Reader) bool {
	said, _ := io.ReadAll(pipe)
	return string(said) == sayKeep
}

// holdLock creates a file and locks it for the life of this process. Unlike a file with a process ID in it, the lock
// cannot outlive its holder, and the kernel tells who holds it.
func holdLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK})
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return file, nil
}

// lockHolder is the process that holds the lock on a file, or 0.
func lockHolder(path string) (int, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	asked := syscall.Flock_t{Type: syscall.F_WRLCK}
	if err := syscall.FcntlFlock(file.Fd(), syscall.F_GETLK, &asked); err != nil {
		return 0, err
	}
	if asked.Type == syscall.F_UNLCK {
		return 0, nil
	}
	return int(asked.Pid), nil
}

// startAndWaitReady starts a child, does what the child waits for, if anything, and waits for its line "ready". A child
// that ends or says anything else has failed, and is gone when the error returns.
func startAndWaitReady(cmd *exec.Cmd, serve func(pid int) error) error {
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reader.Close()
	cmd.Stdout = writer
	err = cmd.Start()
	writer.Close()
	if err != nil {
		return err
	}
	if serve != nil {
		err = serve(cmd.Process.Pid)
	}
	if err == nil {
		line, _ := bufio.NewReader(reader).ReadString('\n')
		if line == sayUp {
			return nil
		}
		err = fmt.Errorf("%s did not come up", strings.Join(cmd.Args, " "))
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return err
}

// bridge is the lab's switch. Every machine has a port there, named like the machine.
const bridge = "lab0"

// runLabInit is process 1 of a lab: it makes the switch and collects orphans until it is killed.
func runLabInit() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep mounts to this lab: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := syscall.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("mount /sys: %w", err)
	}
	if err := errors.Join(syscall.Sethostname([]byte("lab")), os.Chdir("/")); err != nil {
		return err
	}
	err := runInput("link set lo up\nlink add "+bridge+" type bridge forward_delay 0\nlink set "+bridge+" up\n", "ip", "-batch", "-")
	if err != nil {
		return err
	}
	if err := runInput(cutTable, "nft", "-f", "-"); err != nil {
		return err
	}
	fmt.Print(sayUp)
	reapForever()
	return nil
}
