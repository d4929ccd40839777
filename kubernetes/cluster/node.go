package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// node is a machine of the cluster: namespaces with containerd and kubelet.
type node struct {
	name, address, pods string
	// folder holds the node's files, programs the cluster's programs.
	folder, programs string
	groups           []string
	first            *exec.Cmd
	containerd       *process
	kubelet          *process
}

// nodeSettings tells the first process of a node its place.
type nodeSettings struct {
	Name, Folder, Programs string
	Groups                 []string
}

const settingsVariable = "SOFTIOV_CLUSTER_NODE"

// startNode starts the first process of a node, and connects the node to the bridge.
func startNode(number int, folder, programs string) (*node, error) {
	n := &node{name: fmt.Sprintf("node%d", number), programs: programs}
	n.address, n.pods = fmt.Sprintf("10.99.0.1%d", number), fmt.Sprintf("10.244.%d.0/24", number)
	n.folder = filepath.Join(folder, n.name)
	trees, err := cgroupTrees()
	if err != nil {
		return nil, err
	}
	if n.groups, err = makeCgroup(trees, filepath.Join(cgroupName(folder), n.name)); err != nil {
		return nil, err
	}
	for _, name := range []string{"lib", "log"} {
		if err := os.MkdirAll(filepath.Join(n.folder, name), 0o755); err != nil {
			return nil, err
		}
	}
	// Two machines have two numbers.
	if err := os.WriteFile(filepath.Join(n.folder, "machine-id"), fmt.Appendf(nil, "%032x\n", number), 0o644); err != nil {
		return nil, err
	}
	settings, err := json.Marshal(nodeSettings{n.name, n.folder, programs, n.groups})
	if err != nil {
		return nil, err
	}
	ready, closed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	n.first = exec.Command("/proc/self/exe")
	n.first.Env = append(os.Environ(), role+"=node", settingsVariable+"="+string(settings))
	n.first.Stderr = os.Stderr
	n.first.ExtraFiles = []*os.File{closed}
	n.first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	err = n.first.Start()
	closed.Close()
	if err != nil {
		return nil, err
	}
	// The node closes its end when it executes the pause program, after its preparations.
	word := make([]byte, 1)
	if count, _ := ready.Read(word); count != 1 {
		return nil, fmt.Errorf("%s does not start", n.name)
	}
	if _, err := ready.Read(word); err == nil {
		return nil, fmt.Errorf("%s does not start", n.name)
	}
	return n, n.connect()
}

// connect gives the node an interface on the bridge, and its pods a route.
func (n *node) connect() error {
	first := fmt.Sprint(n.first.Process.Pid)
	inside := func(words ...string) []string {
		return append([]string{"nsenter", "--target", first, "--net", "ip"}, words...)
	}
	return commands([][]string{
		{"ip", "link", "add", n.name, "mtu", underlay, "type", "veth", "peer", "name", "eth0", "mtu", underlay, "netns", first},
		{"ip", "link", "set", n.name, "master", "nodes", "up"},
		inside("link", "set", "lo", "up"),
		inside("link", "set", "eth0", "up"),
		inside("address", "add", n.address+"/24", "dev", "eth0"),
		inside("route", "add", "default", "via", clusterAddress),
		{"nsenter", "--target", first, "--net", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"},
		{"ip", "route", "add", n.pods, "via", n.address},
	})
}

// becomeNode prepares the namespaces of a node, and executes the pause program as its first process.
func becomeNode() error {
	var settings nodeSettings
	if err := json.Unmarshal([]byte(os.Getenv(settingsVariable)), &settings); err != nil {
		return err
	}
	// The namespace of control groups is that of a thread, which the executed program continues.
	runtime.LockOSThread()
	trees, err := cgroupTrees()
	if err != nil {
		return err
	}
	for _, group := range settings.Groups {
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte("0"), 0o644); err != nil {
			return err
		}
	}
	if err := syscall.Unshare(syscall.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("namespace of control groups: %w", err)
	}
	if err := privateMounts(); err != nil {
		return err
	}
	if err := syscall.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("mount /sys: %w", err)
	}
	if err := mountCgroups(trees); err != nil {
		return err
	}
	for from, to := range map[string]string{"lib": "/var/lib", "log": "/var/log", "machine-id": "/etc/machine-id"} {
		if err := bind(filepath.Join(settings.Folder, from), to); err != nil {
			return err
		}
	}
	if err := hideSettings(settings.Folder); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	// Kubelet and containers share mounts with each other, but not with the machine.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("shared mounts: %w", err)
	}
	if err := syscall.Sethostname([]byte(settings.Name)); err != nil {
		return err
	}
	ready := os.NewFile(3, "ready")
	if _, err := ready.Write([]byte{1}); err != nil {
		return err
	}
	syscall.CloseOnExec(3)
	return syscall.Exec(filepath.Join(settings.Programs, "pause"), []string{"pause"}, os.Environ())
}

// kubeletSettings are the kernel's settings that kubelet corrects, with the values that it wants (setupKernelTunables in
// kubelet's pkg/kubelet/cm). No namespace has its own, so kubelet would change the machine's.
var kubeletSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// hideSettings shows kubelet files with the values that it wants instead of the kernel's settings.
func hideSettings(folder string) error {
	for setting, value := range kubeletSettings {
		path := filepath.Join("/proc/sys", setting)
		if _, err := os.Stat(path); os.IsNotExist(err) {
			continue
		}
		file := filepath.Join(folder, strings.ReplaceAll(setting, "/", "."))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := bind(file, path); err != nil {
			return err
		}
	}
	return nil
}

// bind shows a file or folder of the test in another place.
func bind(from, to string) error {
	if err := syscall.Mount(from, to, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", to, err)
	}
	return nil
}

// command returns a program that runs in the node. The shell joins the node's control groups before.
func (n *node) command(program string, arguments ...string) *exec.Cmd {
	const script = `for group in $GROUPS_OF_NODE; do echo $$ > "$group/cgroup.procs" || exit; done
exec nsenter --target "$0" --mount --uts --ipc --net --pid --cgroup "$@"`
	words := append([]string{"-c", script, fmt.Sprint(n.first.Process.Pid), program}, arguments...)
	command := exec.Command("sh", words...)
	leaves := n.groups
	if len(leaves) == 1 {
		// Version 2: the node's own group may have no process.
		leaves = []string{filepath.Join(leaves[0], "init")}
	}
	command.Env = append(os.Environ(), "GROUPS_OF_NODE="+strings.Join(leaves, " "), "PATH="+n.programs+":"+os.Getenv("PATH"))
	return command
}

// run runs a program in the node to its end.
func (n *node) run(program string, arguments ...string) (string, error) {
	text, err := n.command(program, arguments...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %s: %w: %s", n.name, program, err, text)
	}
	return string(text), err
}

// startContainerd starts the container runtime, and loads images from archives.
func (n *node) startContainerd(images ...string) error {
	for file, content := range map[string]string{
		"containerd.toml": fmt.Sprintf(containerdConfig, filepath.Join(n.folder, "opt"), n.programs, n.folder, filepath.Join(n.programs, "runc")),
		"cni.conflist":    fmt.Sprintf(cniConfig, n.pods),
	} {
		if err := os.WriteFile(filepath.Join(n.folder, file), []byte(content), 0o600); err != nil {
			return err
		}
	}
	var err error
	config := filepath.Join(n.folder, "containerd.toml")
	if n.containerd, err = start(n.folder, "containerd", n.command("containerd", "--config", config)); err != nil {
		return err
	}
	for _, image := range images {
		err := eventually(stepTimeout, func() error {
			_, err := n.run("ctr", "--namespace", "k8s.io", "images", "import", image)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// startKubelet starts kubelet; after its end, again.
func (n *node) startKubelet(ca *authority) error {
	config := filepath.Join(n.folder, "kubelet.json")
	if err := os.WriteFile(config, fmt.Appendf(nil, kubeletConfig, ca.path("ca.crt"), filepath.Join(n.folder, "volume-plugins")), 0o600); err != nil {
		return err
	}
	var err error
	n.kubelet, err = start(n.folder, "kubelet", n.command("kubelet", "--config="+config,
		"--kubeconfig="+ca.path(n.name+".kubeconfig"), "--hostname-override="+n.name, "--node-ip="+n.address, "--v=2"))
	return err
}
