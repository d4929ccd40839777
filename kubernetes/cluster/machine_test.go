package cluster

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// machineSpec describes a virtual machine in a pod: its name, how QEMU connects to its VFs, and the families of which it has
// two VFs each. first is the number of its first pair: no two interfaces of a cluster have the same address.
type machineSpec struct {
	name, option string
	families     []string
	first        int
}

// Machines with VFs behind vfio-user, and behind vhost-user.
var (
	vfioMachine  = machineSpec{"vfio-machine", "--socket", []string{"82576", "avf"}, 0}
	vhostMachine = machineSpec{"vhost-machine", "--vhost", []string{"virtio"}, 2}
)

// Parts of a template of claims: a request for a VF of a family, and its policy.
const (
	machineClaim = `apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %s}
spec:
  spec:
    devices:
      requests: [%s]
      config: [%s]
`
	machineRequest = `{name: %s, exactly: {deviceClassName: vf.softiov.io, selectors: [
        {cel: {expression: 'device.attributes["vf.softiov.io"].family == "%s"'}}]}}`
	machinePolicy = `{requests: [%s], opaque: {driver: vf.softiov.io,
        parameters: {apiVersion: vf.softiov.io/v1alpha1, kind: VfPolicy, mac: "%s"}}}`
)

// Scripts in a machine. The second interface of each pair is in a network namespace, so a download crosses the host's plane.
const (
	// prepareMachine loads the drivers, and defines how to wait for an interface by its address: drivers name them as they appear.
	prepareMachine = `set -e; modprobe -a igbvf iavf virtio_net
find_interface() { for one in /sys/class/net/*; do if [ "$(cat $one/address)" = $1 ]; then echo ${one##*/}; fi; done; }
interface() { until [ "$(find_interface $1)" ]; do sleep 0.1; done; find_interface $1; }
mkdir /run/www; dd if=/dev/urandom of=/run/www/data bs=1M count=4 2>/dev/null
`
	// connectPair has the pair's number, and the addresses of both interfaces.
	connectPair = `near=$(interface %[2]s); far=$(interface %[3]s); ip netns add far%[1]d; ip link set $far netns far%[1]d
ip address add 10.40.%[1]d.1/24 dev $near; ip link set $near up
ip -netns far%[1]d address add 10.40.%[1]d.2/24 dev $far; ip -netns far%[1]d link set $far up
ip netns exec far%[1]d busybox httpd -h /run/www
`
	downloadOfPair = "busybox wget -q -O - http://10.40.%d.2/data | busybox cmp - /run/www/data || exit\n"
)

// startMachine starts a machine on the first node, which downloads the same bytes by each pair again and again.
func startMachine(t *testing.T, c *testCluster, files string, m machineSpec) podSpec {
	t.Helper()
	var requests, policies, options []string
	prepare, download := prepareMachine, ""
	for place, family := range m.families {
		number := m.first + place
		macs := [2]any{}
		for end, name := range []string{"near", "far"} {
			request := fmt.Sprintf("%s-%s", name, family)
			mac := fmt.Sprintf("02:00:00:00:4%d:0%d", number, end+1)
			requests = append(requests, fmt.Sprintf(machineRequest, request, family))
			policies = append(policies, fmt.Sprintf(machinePolicy, request, mac))
			socket := "/run/softiov/template/nic/" + request + "/vf.sock"
			if m.option == vhostMachine.option {
				socket += "=" + mac
			}
			options = append(options, m.option, socket)
			macs[end] = mac
		}
		prepare += fmt.Sprintf(connectPair, number, macs[0], macs[1])
		download += fmt.Sprintf(downloadOfPair, number)
	}
	createTemplate(t, c, m.name, fmt.Sprintf(machineClaim, m.name, strings.Join(requests, ", "), strings.Join(policies, ", ")))
	machine := podSpec{name: m.name, node: "node1", image: machineImage, claim: m.name, folder: files,
		command: append([]string{"/boot", "--command", prepare, "--repeat", download, "--timeout", fmt.Sprint(stepTimeout.Seconds())}, options...)}
	machine.create(t, c)
	return machine
}

// A new image reaches hosts without a new pod, since the agent has them replaced, and VFs of all families stay. A new pod of
// the host keeps VFs behind vhost-user only: QEMU's front ends connect again.
func TestVirtualMachinesContinueThroughCrashAndUpdateOfTheHost(t *testing.T) {
	files := os.Getenv(machineFilesVariable)
	if files == "" {
		fmt.Println("SKIPPED: virtual machines in pods: no QEMU and kernel; run cargo xtask test --only kubernetes")
		t.SkipNow()
	}
	c := scenario(t)
	vfio, vhost := startMachine(t, c, files, vfioMachine), startMachine(t, c, files, vhostMachine)
	progress(t, c, vfio, vhost)
	must(t, c.killHost(t, c.nodes[0]))
	progress(t, c, vfio, vhost)
	must(t, c.noRestarts(c.nodes[0]))
	updateImage(t, c)
	progress(t, c, vfio, vhost)
	must(t, c.noRestarts(c.nodes[0]))
	c.removePods(t, vfio.name)
	replaceHostPods(t, c)
	progress(t, c, vhost)
}

// updateImage updates the image of the release, and waits until each node's host is of the new one, in its old pod.
func updateImage(t *testing.T, c *testCluster) {
	t.Helper()
	pods, hosts := map[string]string{}, map[string]int{}
	for _, n := range c.nodes {
		name, err := c.pod("host", n)
		must(t, err)
		pods[n.name], hosts[n.name] = name, hostProcess(t, c, n)
	}
	must(t, c.changeValues("tag: "+firstTag, "tag: "+secondTag))
	_, err := c.typeGuide("helm upgrade", nil)
	must(t, err)
	must(t, eventually(stepTimeout, func() error {
		updated, err := c.kubectl("get", "daemonset", "softiov-agent", "--namespace", namespace, "-o", "jsonpath={.status.updatedNumberScheduled}")
		if err == nil && updated != "2" {
			err = fmt.Errorf("%s of 2 agents are updated", updated)
		}
		return err
	}))
	must(t, c.waitInstalled())
	for _, n := range c.nodes {
		name, err := c.pod("host", n)
		must(t, err)
		if name != pods[n.name] {
			t.Fatalf("the update has replaced %s without the administrator", pods[n.name])
		}
		// The predecessor ends a moment after it has handed over.
		must(t, eventually(stepTimeout, func() error {
			if now := hostProcess(t, c, n); now == 0 || now == hosts[n.name] || !isNextProgram(now) {
				return fmt.Errorf("the host of %s is not of the second image", n.name)
			}
			return nil
		}))
	}
}

// isNextProgram returns true for a process of the second image's program, which ends with a word.
func isNextProgram(process int) bool {
	program, err := os.ReadFile(fmt.Sprintf("/proc/%d/exe", process))
	return err == nil && bytes.HasSuffix(program, []byte(secondTag))
}

// replaceHostPods deletes the hosts' pods, as an administrator who has drained the nodes.
func replaceHostPods(t *testing.T, c *testCluster) {
	t.Helper()
	for _, n := range c.nodes {
		name, err := c.pod("host", n)
		must(t, err)
		_, err = c.kubectl("delete", "pod", name, "--namespace", namespace, "--timeout="+stepTimeout.String())
		must(t, err)
	}
	must(t, c.waitInstalled())
	images, err := c.kubectl("get", "pods", "--namespace", namespace, "-o", "jsonpath={.items[*].spec.containers[0].image}")
	must(t, err)
	if strings.Contains(images, ":"+firstTag) {
		t.Errorf("after the update pods have %s", images)
	}
}
