package cluster

import (
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
	"time"
)

// role is the variable that tells this program what it is: the outer process has none, the process in namespaces of its
// own is "cluster", the first process of a node is "node" until it executes the pause program, and "cleaner" removes what
// is left of a run.
const role = "SOFTIOV_CLUSTER_ROLE"

// folderVariable names the folder of the running cluster.
const folderVariable = "SOFTIOV_CLUSTER_FOLDER"

// testsTimeout is the timeout of all tests. They take some three minutes; a machine under load is slower.
const testsTimeout = 40 * time.Minute

// namespaces of the cluster, and of each node in it.
const namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// obstacle returns the reason why no cluster can run here, or an empty string.
func obstacle() string {
	if os.Geteuid() != 0 {
		return "nodes need root"
	}
	for _, program := range []string{"go", "ip", "nsenter", "apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return "`" + program + "` is missing"
		}
	}
	if _, err := os.Stat("/etc/machine-id"); err != nil {
		return "/etc/machine-id is missing, which each node replaces by its own"
	}
	trees, err := cgroupTrees()
	if err != nil || len(trees) == 0 {
		return "no control groups are mounted on /sys/fs/cgroup"
	}
	if reason := missingController(trees); reason != "" {
		return reason
	}
	probe := exec.Command("true")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	if err := probe.Run(); err != nil {
		return fmt.Sprintf("namespaces are not permitted: %v", err)
	}
	for _, link := range []string{"bridge", "veth", "vxlan id 31 dstport 4789"} {
		add := exec.Command("ip", append(strings.Fields("link add probe type"), strings.Fields(link)...)...)
		add.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		if text, err := add.CombinedOutput(); err != nil {
			return fmt.Sprintf("the kernel has no links of type %s: %s", link, strings.TrimSpace(string(text)))
		}
	}
	return ""
}

// missingController returns the reason why groups in the hierarchies cannot have the controllers that kubelet needs.
func missingController(trees []cgroupTree) string {
	all := ""
	for _, tree := range trees {
		own, _ := os.ReadFile(filepath.Join(tree.mount, "cgroup.controllers"))
		all += tree.options + "," + string(own)
	}
	for _, controller := range controllers {
		if !strings.Contains(all, controller) {
			return "the controller " + controller + " of control groups is missing"
		}
	}
	if trees[0].options == "" {
		// A container's own group has processes, and the kernel then refuses.
		if err := enableControllers(trees[0].mount, "group"); err != nil {
			return err.Error()
		}
	}
	return ""
}

// isolate runs this program again in namespaces of its own, as its first process, with the same arguments. When it ends,
// the kernel ends everything that it has started. Returns its exit status.
func isolate(folder string) (int, error) {
	// The kernel sends the signal when this thread ends, not the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	command := again("cluster", folder)
	// The tests' time begins after the programs have been built.
	command.Args = append(command.Args, "-test.timeout="+testsTimeout.String())
	// A proxy of the machine reaches no address of the cluster.
	command.Env = append(command.Env, "NO_PROXY=*", "no_proxy=*")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return 0, err
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(interrupts)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-interrupts:
			_ = command.Process.Kill()
		case <-ended:
		}
	}()
	if err := command.Wait(); err != nil && command.ProcessState == nil {
		return 0, err
	}
	return command.ProcessState.ExitCode(), nil
}

// again returns a command that runs this program in another role.
func again(as, folder string) *exec.Cmd {
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Env = append(os.Environ(), role+"="+as, folderVariable+"="+folder)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return command
}

// cleaner is a process that waits for the end of this one, however it ends, and then removes the run's control groups and
// folder.
type cleaner struct {
	command *exec.Cmd
	// alive is the pipe whose end tells the cleaner to begin.
	alive io.Closer
}

// startCleaner starts the cleaner in a session of its own, so that an interrupt from a terminal does not reach it.
func startCleaner(folder string) (*cleaner, error) {
	command := again("cleaner", folder)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	alive, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &cleaner{command, alive}, command.Start()
}

// finish has the cleaner begin, and waits for its end.
func (c *cleaner) finish() error {
	_ = c.alive.Close()
	if err := c.command.Wait(); err != nil {
		return fmt.Errorf("the cluster leaves something behind: %w", err)
	}
	return nil
}

// clean waits for the end of standard input, and removes the control groups and the folder of a run.
func clean(folder string) error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	trees, err := cgroupTrees()
	return errors.Join(err, removeCgroup(trees, cgroupName(folder)), os.RemoveAll(folder))
}

// cgroupName returns the name of the cluster's control group.
func cgroupName(folder string) string {
	return "softiov-" + filepath.Base(folder)
}

// enterCluster prepares the namespaces of the cluster: a network with a bridge for the nodes, and the address of the API
// server's service, so that no proxy is needed.
func enterCluster() error {
	if err := privateMounts(); err != nil {
		return err
	}
	return commands([][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "address", "add", serviceAddress + "/32", "dev", "lo"},
		{"ip", "link", "add", "nodes", "mtu", underlay, "type", "bridge"},
		{"ip", "address", "add", clusterAddress + "/24", "dev", "nodes"},
		{"ip", "link", "set", "nodes", "up"},
		// The API server refuses to start without a default route.
		{"ip", "route", "add", "default", "via", "10.99.0.254"},
		{"sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"},
	})
}

// privateMounts makes this process's mounts its own, and shows its own processes and network.
func privateMounts() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// commands runs programs one after the other.
func commands(all [][]string) error {
	for _, words := range all {
		if _, err := output(words[0], words[1:]...); err != nil {
			return err
		}
	}
	return nil
}
