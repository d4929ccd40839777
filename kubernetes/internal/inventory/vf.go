// Package inventory follows the VFs of a host: which it offers, and which of them can be given to pods.
package inventory

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/holders"
	"softiov.io/kubernetes/internal/host"
)

// VF is one virtual function as the agent offers it.
type VF struct {
	host.VF
	Port, Family, Uplink string
	// NUMA is the node whose processors serve the port, or nil if the port may run on several nodes.
	NUMA *int
	// Reason is the reason why a pod cannot use the VF now; empty for a healthy VF.
	Reason string
	// Drained is true if the VF takes no new pods. A pod that has it keeps it.
	Drained bool
	// Resource is the extended resource of the port, or "" if its VFs are for claims.
	Resource string
	// Holder is the claim and the pod that have the VF.
	Holder holders.Holder
	// Held is the reason why the VF takes no new pods although it is healthy: a claim or pod has it from before its port was given
	// to the other side, or to another resource. It is empty for other VFs.
	Held string
}

// Healthy reports whether a pod can use the VF.
func (vf *VF) Healthy() bool { return vf.Reason == "" }

// Offered reports whether the VF takes new pods.
func (vf *VF) Offered() bool { return vf.Healthy() && !vf.Drained && vf.Held == "" }

// Folder returns the folder of the VF's socket, which is mounted into pods.
func (vf *VF) Folder() string { return filepath.Dir(vf.Socket) }

// Device returns the VF as a record of a claim has it, without requests and settings.
func (vf *VF) Device() *claims.Device {
	return &claims.Device{VF: vf.Name, Folder: vf.Folder(), Socket: vf.Socket, Family: vf.Family, MAC: vf.MAC}
}

// vmmListens is the socket mode of a VF whose VMM creates the socket. A pod would need a writable folder of the node for it,
// and leave files there for the next pod.
const vmmListens = "client"

// linkRates has the speed of a family's link, Mb/s.
var linkRates = map[string]int{"82576": 1_000, "avf": 25_000, "virtio": 100_000}

// LinkRate returns the speed of the VF's link, Mb/s; 0 for a family that the agent does not know.
func (vf *VF) LinkRate() int { return linkRates[vf.Family] }

// VLANs returns the VLANs that the host's administrator allows, as "any" or "10,20,100-199".
func (vf *VF) VLANs() string {
	return strings.Trim(string(vf.Settings["vlans"]), `"`)
}

// VLANRange returns the lowest and highest allowed VLAN. It returns false if none is allowed.
func (vf *VF) VLANRange() (low, high int, ok bool) {
	text := vf.VLANs()
	if text == "any" {
		return 1, 4094, true
	}
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, errFrom := strconv.Atoi(strings.TrimSpace(first))
		to, errTo := strconv.Atoi(strings.TrimSpace(last))
		if errFrom != nil || errTo != nil {
			continue
		}
		if !ok || from < low {
			low = from
		}
		high, ok = max(high, to), true
	}
	return low, high, ok
}

// vfs returns the VFs of the ports, each with the reason that keeps it from pods.
func vfs(ports []host.Port, control string, nodes []numaNode) []VF {
	sockets := []string{control}
	for _, port := range ports {
		for _, vf := range port.VFs {
			sockets = append(sockets, vf.Socket)
		}
	}
	var all []VF
	for _, port := range ports {
		for _, status := range port.VFs {
			family := cmp.Or(status.Family, port.Family)
			vf := VF{VF: status, Port: port.Name, Family: family, Uplink: "none", NUMA: numaOf(port.CPUs, nodes)}
			if port.UplinkStatus != nil {
				vf.Uplink = port.UplinkStatus.Kind + ":" + port.UplinkStatus.Name
			}
			vf.Reason = obstacle(&vf, sockets)
			all = append(all, vf)
		}
	}
	return all
}

// obstacle returns the reason why the VF may not be given to a pod, or "".
func obstacle(vf *VF, sockets []string) string {
	if quarantine := vf.Conduct.Quarantine; quarantine != nil {
		return fmt.Sprintf("VF %s is quarantined (%s): softiov vf set %s --quarantine off", vf.Name, *quarantine, vf.Name)
	}
	if vf.SocketMode == vmmListens {
		return fmt.Sprintf("the VMM of VF %s listens (socket_mode = %q), and a pod's VMM cannot: it would write to the node; "+
			"leave socket_mode out of the host's configuration", vf.Name, vmmListens)
	}
	inside := func(socket string) bool {
		return socket != vf.Socket && strings.HasPrefix(socket, vf.Folder()+"/")
	}
	if at := slices.IndexFunc(sockets, inside); at >= 0 {
		return fmt.Sprintf("the folder of VF %s, %s, also holds %s, which its pod would see: give the VF a socket in a folder of its own",
			vf.Name, vf.Folder(), sockets[at])
	}
	return ""
}

// numaNode is the processors of one NUMA node of this machine.
type numaNode struct {
	id   int
	cpus map[int]bool
}

// numaOf returns the NUMA node that has all of the processors, or nil.
func numaOf(cpus []int, nodes []numaNode) *int {
	if len(cpus) == 0 {
		return nil
	}
	for _, node := range nodes {
		if !slices.ContainsFunc(cpus, func(cpu int) bool { return !node.cpus[cpu] }) {
			return &node.id
		}
	}
	return nil
}

// numaNodes reads the machine's NUMA nodes from sysfs. A machine without that folder has none.
func numaNodes(folder string) []numaNode {
	var nodes []numaNode
	paths, _ := filepath.Glob(filepath.Join(folder, "node[0-9]*"))
	for _, path := range paths {
		id, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), "node"))
		list, errRead := os.ReadFile(filepath.Join(path, "cpulist"))
		if err != nil || errRead != nil {
			continue
		}
		nodes = append(nodes, numaNode{id: id, cpus: cpuList(string(list))})
	}
	return nodes
}

// cpuList reads a list of processors as the kernel prints it, such as 0-3,8.
func cpuList(text string) map[int]bool {
	cpus := map[int]bool{}
	for _, part := range strings.Split(strings.TrimSpace(text), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, errFrom := strconv.Atoi(first)
		to, errTo := strconv.Atoi(last)
		if errFrom != nil || errTo != nil {
			continue
		}
		for cpu := from; cpu <= to; cpu++ {
			cpus[cpu] = true
		}
	}
	return cpus
}
