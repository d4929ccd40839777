package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stepTimeout is the timeout of one step: a pod that starts or ends, a machine that boots. It does not decide a test, unless
// the step never ends.
const stepTimeout = 5 * time.Minute

// process is a program of the cluster with its log.
type process struct {
	name, log string
	command   *exec.Cmd
	ended     chan struct{}
}

// start starts a program whose output goes to a log in the folder.
func start(folder, name string, command *exec.Cmd) (*process, error) {
	p := &process{name: name, log: filepath.Join(folder, name+".log"), command: command, ended: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		_ = command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// kill ends the program and its children with SIGKILL, and waits for the end. nsenter has the program as its child.
func (p *process) kill() {
	for _, child := range children(p.command.Process.Pid) {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	<-p.ended
}

// children returns the ids of a process's children.
func children(parent int) []int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	var found []int
	for _, task := range tasks {
		list, _ := os.ReadFile(task)
		for _, field := range strings.Fields(string(list)) {
			var child int
			if _, err := fmt.Sscan(field, &child); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}

// tail returns the last lines of a file.
func tail(file string, lines int) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// eventually repeats a check until it returns no error, and returns its last error after the timeout.
func eventually(timeout time.Duration, check func() error) error {
	deadline := time.Now().Add(timeout)
	for {
		err := check()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
}
