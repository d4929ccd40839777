package cluster

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// guest returns a pod whose embedded guest drives the first of all VFs of the device plugin's port. It sends flows to a
// peer, or answers.
func guest(name, node, ip string, peer ...string) podSpec {
	command := append([]string{"/guest", pluginSocket(0), ip}, peer...)
	return podSpec{name: name, node: node, image: guestImage, vfs: 4, command: command}
}

// connected starts a guest on each node, of which the second one sends flows to the first one, and returns the second one.
func connected(t *testing.T, c *testCluster) podSpec {
	t.Helper()
	answering := guest("answering", "node1", "10.20.0.1")
	answering.create(t, c)
	answering.prints(t, c, "is up")
	sending := guest("sending", "node2", "10.20.0.2", "10.20.0.1")
	sending.create(t, c)
	progress(t, c, sending)
	return sending
}

func TestPodsOnTwoNodesTalkThroughUplinksOverAVXLAN(t *testing.T) {
	connected(t, scenario(t))
}

// The connections are TCP's, and the guest compares every byte. Pings would not tell a lost frame from a late answer.
func TestHostUpgradedUnderRunningPodsLosesNoConnection(t *testing.T) {
	c := scenario(t)
	sending := connected(t, c)
	for _, n := range c.nodes {
		before := hostProcess(t, c, n)
		_, err := c.inPod("host", n, "/softiov", "upgrade")
		must(t, err)
		// The predecessor ends a moment after it has handed over.
		must(t, eventually(stepTimeout, func() error {
			if now := hostProcess(t, c, n); now == 0 || now == before {
				return fmt.Errorf("%s has the same host after the upgrade", n.name)
			}
			return nil
		}))
		progress(t, c, sending)
		must(t, c.noRestarts(n))
	}
}

// A crash loses frames on their way, as a port reset does. TCP sends them again.
func TestHostKilledUnderRunningPodsLosesNoConnection(t *testing.T) {
	c := scenario(t)
	sending := connected(t, c)
	for _, n := range c.nodes {
		must(t, c.killHost(t, n))
		progress(t, c, sending)
		must(t, c.noRestarts(n))
	}
}

// killHost kills the host on a node with SIGKILL, and waits until the keeper has started another one that answers.
func (c *testCluster) killHost(t *testing.T, n *node) error {
	t.Helper()
	killed := hostProcess(t, c, n)
	if killed == 0 {
		return fmt.Errorf("%s has no host", n.name)
	}
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
		return err
	}
	return eventually(stepTimeout, func() error {
		if now := hostProcess(t, c, n); now == 0 || now == killed {
			return fmt.Errorf("the keeper of %s starts no host", n.name)
		}
		_, err := c.inPod("host", n, "/softiov", "vf", "list")
		return err
	})
}

// noRestarts returns an error if kubelet has restarted the host's container.
func (c *testCluster) noRestarts(n *node) error {
	name, err := c.pod("host", n)
	if err != nil {
		return err
	}
	count, err := c.kubectl("get", "pod", name, "--namespace", namespace, "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
	if err == nil && count != "0" {
		err = fmt.Errorf("kubelet has restarted the host of %s %s times", n.name, count)
	}
	return err
}

// hostProcess returns the id of the host on a node, or 0 while its keeper starts one. The container's first process is the
// keeper; the host is its child with the program's name.
func hostProcess(t *testing.T, c *testCluster, n *node) int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	must(t, err)
	for _, entry := range entries {
		var keeper int
		if _, err := fmt.Sscan(entry.Name(), &keeper); err != nil || !isHost(keeper) || !isIn(keeper, n) {
			continue
		}
		for _, child := range children(keeper) {
			if isHost(child) && comm(child) == "softiov" {
				return child
			}
		}
	}
	return 0
}

// isHost returns true for keeper, starter and host.
func isHost(process int) bool {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", process))
	return strings.HasPrefix(string(line), "/var/lib/softiov/bin/softiov\x00serve\x00")
}

func comm(process int) string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", process))
	return strings.TrimSpace(string(name))
}

// isIn returns true if a process with the node's network is in the node.
func isIn(process int, n *node) bool {
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", process))
	first, fault := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", n.first.Process.Pid))
	return err == nil && fault == nil && own == first
}

func TestAgentRegistersAgainAfterARestartOfKubelet(t *testing.T) {
	c := scenario(t)
	n := c.nodes[0]
	sending := connected(t, c)
	n.kubelet.kill()
	must(t, n.startKubelet(c.ca))
	// The node's status still has the VFs of the killed kubelet.
	must(t, eventually(stepTimeout, func() error { return c.registered(n) }))
	must(t, c.waitInstalled())
	// The node's guest keeps its VF, and both interfaces give VFs to new pods.
	progress(t, c, sending)
	c.removePods(t, "answering")
	template(t, c, "after-restart", "pf0", 1, "")
	plugin := podSpec{name: "plugin-after-restart", node: "node1", image: image, vfs: 1, command: []string{"/softiov", "--version"}}
	claim := podSpec{name: "claim-after-restart", node: "node1", image: image, claim: "after-restart", command: []string{"/softiov", "--version"}}
	plugin.create(t, c)
	claim.create(t, c)
	plugin.reaches(t, c, "Succeeded")
	claim.reaches(t, c, "Succeeded")
}

// registered returns an error unless the device plugin has registered with the running kubelet, which counts registrations.
func (c *testCluster) registered(n *node) error {
	metrics, err := c.kubectl("get", "--raw", "/api/v1/nodes/"+n.name+"/proxy/metrics")
	if err == nil && !strings.Contains(metrics, `kubelet_device_plugin_registration_total{resource_name="softiov.io/vf"}`) {
		err = fmt.Errorf("kubelet of %s has no registration of softiov.io/vf", n.name)
	}
	return err
}

func TestDrainedPortTakesNoNewPods(t *testing.T) {
	c := scenario(t)
	n := c.nodes[0]
	agent := func(command string) {
		t.Helper()
		_, err := c.inPod("agent", n, "/softiov-node", command, "--state", "/var/lib/softiov/node", "pf0")
		must(t, err)
	}
	template(t, c, "drained", "pf0", 1, "")
	stays := claimed("stays", "drained", "10.20.1.1")
	stays.create(t, c)
	stays.reaches(t, c, "Running")
	agent("drain")
	t.Cleanup(func() { agent("undrain") })
	must(t, eventually(stepTimeout, func() error {
		devices, err := c.kubectl("get", "resourceslices", "--field-selector", "spec.nodeName=node1", "-o", "jsonpath={.items[*].spec.devices[*].name}")
		if err == nil && strings.Contains(devices, "pf0") {
			err = fmt.Errorf("node1 still offers %s", devices)
		}
		return err
	}))
	waits := podSpec{name: "waits", node: "node1", image: image, claim: "drained", command: []string{"/softiov", "--version"}}
	waits.create(t, c)
	must(t, eventually(stepTimeout, func() error {
		events, err := waits.events(c)
		if err == nil && !strings.Contains(events, "cannot allocate all claims") {
			err = fmt.Errorf("the scheduler places a pod on a drained port: %s", events)
		}
		return err
	}))
	stays.reaches(t, c, "Running")
	agent("undrain")
	waits.reaches(t, c, "Succeeded")
}
