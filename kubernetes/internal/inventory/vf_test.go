package inventory

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"softiov.io/kubernetes/internal/host"
)

func vf(name, socket string) host.VF { return host.VF{Name: name, Socket: socket} }

func TestVFsWithAnObstacleAreNotOffered(t *testing.T) {
	quarantined := vf("pf0vf3", "/run/softiov/pf0vf3/vf.sock")
	reason := "spoofing"
	quarantined.Conduct.Quarantine = &reason
	listens := vf("pf0vf6", "/run/softiov/pf0vf6/vf.sock")
	listens.SocketMode = "client"
	ports := []host.Port{{Name: "pf0", VFs: []host.VF{
		vf("pf0vf0", "/run/softiov/pf0vf0/vf.sock"),
		vf("pf0vf1", "/run/vms/web.sock"),
		vf("pf0vf2", "/run/vms/db.sock"),
		quarantined,
		vf("pf0vf4", "/run/softiov/vf4.sock"),
		// A folder whose name begins like another's is another folder.
		vf("pf0vf5", "/run/softiov/pf0vf/vf.sock"),
		listens,
	}}}
	all := vfs(ports, "/run/softiov/control/control.sock", nil)
	for i, want := range []string{
		"", "also holds /run/vms/db.sock", "also holds /run/vms/web.sock", "VF pf0vf3 is quarantined (spoofing): softiov vf set pf0vf3 --quarantine off",
		"also holds /run/softiov/control/control.sock", "", `listens (socket_mode = "client"), and a pod's VMM cannot`,
	} {
		if got := all[i].Reason; want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", all[i].Name, got, want)
		}
	}
}

func TestVLANRangeSpansAllowedVLANs(t *testing.T) {
	for _, test := range []struct {
		vlans     string
		low, high int
		ok        bool
	}{
		{"any", 1, 4094, true}, {"10,20,100-199", 10, 199, true}, {"7", 7, 7, true}, {"", 0, 0, false}, {"300-310,5", 5, 310, true},
	} {
		encoded, _ := json.Marshal(test.vlans)
		vf := VF{VF: host.VF{Settings: host.Settings{"vlans": encoded}}}
		if low, high, ok := vf.VLANRange(); low != test.low || high != test.high || ok != test.ok {
			t.Errorf("%q: %d-%d %v", test.vlans, low, high, ok)
		}
	}
}

func TestNUMANodeHasAllProcessorsOfThePort(t *testing.T) {
	folder := t.TempDir()
	for node, cpus := range map[string]string{"node0": "0-3,8\n", "node1": "4-7\n", "node2": "\n"} {
		if err := os.Mkdir(filepath.Join(folder, node), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, node, "cpulist"), []byte(cpus), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nodes := numaNodes(folder)
	for _, test := range []struct {
		cpus []int
		want int
	}{
		{nil, -1}, {[]int{0, 8}, 0}, {[]int{4}, 1}, {[]int{3, 4}, -1}, {[]int{99}, -1},
	} {
		got := -1
		if node := numaOf(test.cpus, nodes); node != nil {
			got = *node
		}
		if got != test.want {
			t.Errorf("processors %v are of node %d, want %d", test.cpus, got, test.want)
		}
	}
	if len(numaNodes("/nonexistent")) != 0 {
		t.Error("a machine without the folder has nodes")
	}
}
