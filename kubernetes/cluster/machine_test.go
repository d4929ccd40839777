package cluster

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// machineClaim is a template whose claims have both virtio VFs of a node, each with an address for its interface.
const machineClaim = `apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: machine}
spec:
  spec:
    devices:
      requests: [%s, %s]
      config: [%s, %s]
`

// Parts of the template: a request for a VF, and its policy.
const (
	virtioRequest = `{name: %s, exactly: {deviceClassName: vf.softiov.io, selectors: [
        {cel: {expression: 'device.attributes["vf.softiov.io"].family == "virtio"'}}]}}`
	virtioPolicy = `{requests: [%s], opaque: {driver: vf.softiov.io,
        parameters: {apiVersion: vf.softiov.io/v1alpha1, kind: VfPolicy, mac: "%s"}}}`
)

// Requests of the machine, and the addresses of its interfaces.
var (
	near = [2]string{"near", "02:00:00:00:40:01"}
	far  = [2]string{"far", "02:00:00:00:40:02"}
)

// Scripts in the machine. The second interface is in a network namespace, so a download crosses the host's plane.
const (
	setUpMachine = `set -e; modprobe virtio_net
mkdir /run/www; dd if=/dev/urandom of=/run/www/data bs=1M count=8 2>/dev/null
ip netns add far; ip link set eth1 netns far
ip address add 10.40.0.1/24 dev eth0; ip link set eth0 up
ip -netns far address add 10.40.0.2/24 dev eth1; ip -netns far link set eth1 up
ip netns exec far busybox httpd -h /run/www`
	download = `busybox wget -q -O - http://10.40.0.2/data | busybox cmp - /run/www/data`
)

// startMachine starts a virtual machine in a pod of the first node, which downloads the same bytes again and again.
func startMachine(t *testing.T, c *testCluster, files string) podSpec {
	t.Helper()
	requests, policies := [2]any{}, [2]any{}
	vhosts := []string{}
	for index, vf := range [][2]string{near, far} {
		requests[index] = fmt.Sprintf(virtioRequest, vf[0])
		policies[index] = fmt.Sprintf(virtioPolicy, vf[0], vf[1])
		vhosts = append(vhosts, "--vhost", "/run/softiov/template/nic/"+vf[0]+"/vf.sock="+vf[1])
	}
	createTemplate(t, c, "machine", fmt.Sprintf(machineClaim, requests[0], requests[1], policies[0], policies[1]))
	machine := podSpec{name: "machine", node: "node1", image: machineImage, claim: "machine", folder: files,
		command: append([]string{"/boot", "--command", setUpMachine, "--repeat", download, "--timeout", fmt.Sprint(stepTimeout.Seconds())}, vhosts...)}
	machine.create(t, c)
	return machine
}

// The administrator updates the image, and then replaces the host's pods: the DaemonSet has the strategy OnDelete. QEMU's
// front ends connect again, and the machine's connections continue.
func TestVirtualMachineContinuesThroughCrashAndUpdateOfTheHost(t *testing.T) {
	files := os.Getenv(machineFilesVariable)
	if files == "" {
		fmt.Println("SKIPPED: a virtual machine in a pod: no QEMU and kernel; run cargo xtask test --only kubernetes")
		t.SkipNow()
	}
	c := scenario(t)
	machine := startMachine(t, c, files)
	machine.progresses(t, c)
	must(t, c.killHost(t, c.nodes[0]))
	machine.progresses(t, c)
	must(t, c.noRestarts(c.nodes[0]))
	updateHosts(t, c)
	machine.progresses(t, c)
}

// updateHosts updates the image of host and agent, and replaces the host's pods.
func updateHosts(t *testing.T, c *testCluster) {
	t.Helper()
	before := map[string]string{}
	for _, n := range c.nodes {
		name, err := c.pod("host", n)
		must(t, err)
		before[n.name] = name
	}
	must(t, c.helm("upgrade", "softiov", "../chart", "--namespace", namespace, "--reuse-values", "--set", "image.tag="+secondTag))
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
		if name != before[n.name] {
			t.Fatalf("the update has replaced %s without the administrator", before[n.name])
		}
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
