package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// hostValues are the chart's values: VFs for claims on pf0, with some VLANs, VFs for the device plugin on pf1, joined with
// the other node by a VXLAN, and virtio and AVF VFs for claims on pf2 and pf3.
const hostValues = `image: {repository: localhost/softiov, tag: test}
host:
  config: |
    access = { mode = "0666" }

    [[port]]
    vfs = 3
    [[port.vf]]
    index = 0
    vlans = "10,100-150"
    [[port.vf]]
    index = 1
    vlans = "10,100-199"
    [[port.vf]]
    index = 2
    vlans = "10,100-199"

    [[port]]
    vfs = 4
    uplink = { interface = "vx0" }

    [[port]]
    family = "virtio"
    vfs = 2

    [[port]]
    family = "avf"
    vfs = 2
agent:
  devicePlugin: [pf1]
`

// namespace is where the guide installs the chart.
const namespace = "softiov-system"

// install joins the nodes by a VXLAN, and installs the chart by the commands of the guide.
func install(c *testCluster) error {
	for number, n := range c.nodes {
		if err := n.joinVXLAN(c.nodes[1-number]); err != nil {
			return err
		}
	}
	if err := c.changeValues("", hostValues); err != nil {
		return err
	}
	if _, err := c.typeGuide("helm install", nil); err != nil {
		return err
	}
	if err := c.waitInstalled(); err != nil {
		return err
	}
	agent, err := c.pod("agent", c.nodes[0])
	if err != nil {
		return err
	}
	_, err = c.typeGuide("softiov-node status", map[string]string{"AGENT-POD": agent})
	return err
}

// changeValues replaces a text that the user's file of values has once, or writes all of it if the text is empty.
func (c *testCluster) changeValues(before, after string) error {
	file := filepath.Join(c.folder, "values.yaml")
	if before != "" {
		values, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if count := strings.Count(string(values), before); count != 1 {
			return fmt.Errorf("the values have %q %d times", before, count)
		}
		after = strings.Replace(string(values), before, after, 1)
	}
	return os.WriteFile(file, []byte(after), 0o600)
}

// waitInstalled waits until host and agent of both nodes are ready and the nodes offer VFs.
func (c *testCluster) waitInstalled() error {
	return eventually(stepTimeout, func() error {
		for _, component := range []string{"host", "agent"} {
			status, err := c.kubectl("get", "daemonset", "softiov-"+component, "--namespace", namespace, "-o", "jsonpath={.status.numberReady}")
			if err != nil || status != "2" {
				return fmt.Errorf("%s: %s of 2 pods are ready, %v", component, status, err)
			}
		}
		for _, n := range c.nodes {
			if err := c.offers(n, "4"); err != nil {
				return err
			}
		}
		return nil
	})
}

// offers returns an error unless the node offers a number of VFs by the device plugin, and its seven others to claims.
func (c *testCluster) offers(n *node, count string) error {
	vfs, err := c.kubectl("get", "node", n.name, "-o", `jsonpath={.status.allocatable.softiov\.io/vf}`)
	if err != nil || vfs != count {
		return fmt.Errorf("%s offers %q VFs by the device plugin, want %s: %v", n.name, vfs, count, err)
	}
	devices, err := c.kubectl("get", "resourceslices", "--field-selector", "spec.nodeName="+n.name, "-o", "jsonpath={.items[*].spec.devices[*].name}")
	if err != nil || len(strings.Fields(devices)) != 7 {
		return fmt.Errorf("%s offers %q to claims, want seven: %v", n.name, devices, err)
	}
	return nil
}

// joinVXLAN makes the node's end of a VXLAN to another node.
func (n *node) joinVXLAN(other *node) error {
	if _, err := n.run("ip", "link", "add", "vx0", "mtu", "1500", "type", "vxlan", "id", "31", "remote", other.address, "dstport", "4789", "dev", "eth0"); err != nil {
		return err
	}
	_, err := n.run("ip", "link", "set", "vx0", "up")
	return err
}

// pod returns the name of a component's pod on a node.
func (c *testCluster) pod(component string, n *node) (string, error) {
	name, err := c.kubectl("get", "pods", "--namespace", namespace, "--field-selector", "spec.nodeName="+n.name,
		"--selector", "app.kubernetes.io/component="+component, "-o", "jsonpath={.items[*].metadata.name}")
	if err == nil && name == "" {
		err = fmt.Errorf("%s has no pod %s", n.name, component)
	}
	return name, err
}

// inPod runs a program in a component's pod on a node.
func (c *testCluster) inPod(component string, n *node, words ...string) (string, error) {
	name, err := c.pod(component, n)
	if err != nil {
		return "", err
	}
	return c.kubectl(append([]string{"exec", "--namespace", namespace, name, "--"}, words...)...)
}
