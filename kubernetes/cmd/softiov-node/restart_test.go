package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"softiov.io/kubernetes/internal/claims"
)

// prepareFirst starts host and agent, and prepares a claim with VLAN 100 on pf0vf1.
func prepareFirst(t *testing.T) (string, *testHost, *testAgent, *draKubelet) {
	t.Helper()
	folder := shortFolder(t)
	host := startHost(t, folder)
	agent := startAgent(t, folder, newKube(claim("first", `"vlan":100`, "pf0vf1")))
	kubelet, _ := registerDRA(t, folder)
	if answer := kubelet.prepare(claim("first", "", "pf0vf1")); answer.Error != "" {
		t.Fatal(answer.Error)
	}
	return folder, host, agent, kubelet
}

// specs returns the CDI files of claims.
func specs(t *testing.T, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "cdi", "softiov.io-vf_*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestAgentRestartKeepsClaims(t *testing.T) {
	t.Parallel()
	folder, host, agent, _ := prepareFirst(t)
	agent.stop()
	agent.start()
	kubelet, _ := registerDRA(t, folder)
	// Kubelet repeats prepare after its own restart.
	if answer := kubelet.prepare(claim("first", "", "pf0vf1")); answer.Error != "" || len(answer.Devices) != 1 {
		t.Fatalf("prepare after the restart: %v", answer)
	}
	if fault := kubelet.unprepare(claim("first", "", "pf0vf1")); fault != "" || host.setting("pf0vf1", "vlan") != "0" {
		t.Errorf("unprepare by another process: %q, vlan %s", fault, host.setting("pf0vf1", "vlan"))
	}
}

// Reported for dra-example-driver (kubernetes#141433): /var/run is empty after a reboot, the driver's records are not.
func TestCDIFileLostByRebootIsWrittenAgain(t *testing.T) {
	t.Parallel()
	folder, _, agent, _ := prepareFirst(t)
	agent.stop()
	if err := os.RemoveAll(filepath.Join(folder, "cdi")); err != nil {
		t.Fatal(err)
	}
	agent.start()
	eventually(t, "the agent writes the CDI file without kubelet", func() bool { return len(specs(t, folder)) == 1 })
	if err := os.Remove(specs(t, folder)[0]); err != nil {
		t.Fatal(err)
	}
	kubelet, _ := registerDRA(t, folder)
	if answer := kubelet.prepare(claim("first", "", "pf0vf1")); answer.Error != "" || len(specs(t, folder)) != 1 {
		t.Errorf("prepare does not write the file again: %v", answer)
	}
}

func TestHostRestartKeepsPolicyOfClaims(t *testing.T) {
	t.Parallel()
	_, host, _, _ := prepareFirst(t)
	host.stop()
	host.start()
	if vlan := host.setting("pf0vf1", "vlan"); vlan != "100" {
		t.Errorf("vlan %s after a restart of the host", vlan)
	}
}

func TestPolicyThatTheHostLostIsSetAgain(t *testing.T) {
	t.Parallel()
	_, host, _, _ := prepareFirst(t)
	host.stop()
	host.forget()
	host.start()
	eventually(t, "the agent sets the VLAN again", func() bool { return host.setting("pf0vf1", "vlan") == "100" })
}

func TestAdministratorsChangeOfAClaimedVFStays(t *testing.T) {
	t.Parallel()
	_, host, agent, _ := prepareFirst(t)
	setVLAN(t, host, "pf0vf1", "20")
	agent.stop()
	agent.start()
	time.Sleep(300 * time.Millisecond) // Several rounds of the agent.
	if vlan := host.setting("pf0vf1", "vlan"); vlan != "20" {
		t.Errorf("the agent has overridden the administrator's VLAN 20 with %s", vlan)
	}
}

// Reported for kubelet (kubernetes#129402): a pod cannot end while its driver fails to unprepare.
func TestClaimEndsWhileTheHostIsAway(t *testing.T) {
	t.Parallel()
	folder, host, agent, kubelet := prepareFirst(t)
	host.stop()
	if fault := kubelet.unprepare(claim("first", "", "pf0vf1")); fault != "" {
		t.Fatalf("the pod cannot end without the host: %s", fault)
	}
	if len(specs(t, folder)) != 0 {
		t.Error("the CDI file of the ended claim is still there")
	}
	// The agent may restart too before the host is back.
	agent.stop()
	agent.start()
	host.start()
	eventually(t, "the host takes the VLAN back", func() bool { return host.setting("pf0vf1", "vlan") == "0" })
	eventually(t, "the record is gone", func() bool {
		record, err := agentStore(t, folder).Get("first-uid")
		return record == nil && err == nil
	})
}

func agentStore(t *testing.T, folder string) *claims.Store {
	t.Helper()
	store, err := claims.OpenStore(filepath.Join(folder, "as", "claims"))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestRecordsLostWithTheDiskAreRebuiltFromTheAPI(t *testing.T) {
	t.Parallel()
	folder, host, agent, _ := prepareFirst(t)
	agent.stop()
	if err := os.RemoveAll(filepath.Join(folder, "as")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(specs(t, folder)[0]); err != nil {
		t.Fatal(err)
	}
	agent.start()
	eventually(t, "the CDI file is back", func() bool { return len(specs(t, folder)) == 1 })
	kubelet, _ := registerDRA(t, folder)
	// The second claim was never prepared. The scheduler would not give it the VF; the driver is the last line of defence.
	second := claim("second", "", "pf0vf1")
	agent.add(second)
	if answer := kubelet.prepare(second); !strings.Contains(answer.Error, "VF pf0vf1 is still prepared for claim default/first") {
		t.Errorf("the VF is given away twice: %v", answer)
	}
	if fault := kubelet.unprepare(claim("first", "", "pf0vf1")); fault != "" || host.setting("pf0vf1", "vlan") != "0" {
		t.Errorf("unprepare: %q, vlan %s", fault, host.setting("pf0vf1", "vlan"))
	}
}

func TestDamagedRecordIsRebuilt(t *testing.T) {
	t.Parallel()
	folder, host, agent, _ := prepareFirst(t)
	agent.stop()
	path := filepath.Join(folder, "as", "claims", "first-uid.json")
	if err := os.WriteFile(path, []byte(`{"version":1,"ui`), 0o600); err != nil {
		t.Fatal(err)
	}
	agent.start()
	kubelet, _ := registerDRA(t, folder)
	if answer := kubelet.prepare(claim("first", "", "pf0vf1")); answer.Error != "" {
		t.Errorf("prepare: %s", answer.Error)
	}
	if fault := kubelet.unprepare(claim("first", "", "pf0vf1")); fault != "" || host.setting("pf0vf1", "vlan") != "0" {
		t.Errorf("unprepare: %q, vlan %s", fault, host.setting("pf0vf1", "vlan"))
	}
}

// A claim of a pod that kubelet has not started must not be prepared early: kubelet would not release it.
func TestUnpreparedClaimIsNotRebuilt(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	host := startHost(t, folder)
	agent := startAgent(t, folder, newKube(claim("waiting", `"vlan":40`, "pf0vf2"), claim("plain", "", "pf0vf0")))
	eventually(t, "the VFs are published", func() bool { return len(agent.offered()) == 6 })
	time.Sleep(200 * time.Millisecond)
	if vlan := host.setting("pf0vf2", "vlan"); vlan != "30" || len(specs(t, folder)) != 0 {
		t.Errorf("vlan %s, CDI files %v", vlan, specs(t, folder))
	}
}

// Reported for dra-example-driver (#263): a claim deleted by force is reallocated while its container still runs.
func TestForceDeletedClaimKeepsItsVFUntilUnprepare(t *testing.T) {
	t.Parallel()
	_, host, agent, kubelet := prepareFirst(t)
	if err := agent.kube.ResourceV1().ResourceClaims("default").Delete(context.Background(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	second := claim("second", `"vlan":20`, "pf0vf1")
	agent.add(second)
	answer := kubelet.prepare(second)
	if !strings.Contains(answer.Error, "softiov-node release first-uid") || host.setting("pf0vf1", "vlan") != "100" {
		t.Errorf("error %q, vlan %s", answer.Error, host.setting("pf0vf1", "vlan"))
	}
	if fault := kubelet.unprepare(claim("first", "", "pf0vf1")); fault != "" {
		t.Fatal(fault)
	}
	if answer := kubelet.prepare(second); answer.Error != "" || host.setting("pf0vf1", "vlan") != "20" {
		t.Errorf("the freed VF: %v, vlan %s", answer, host.setting("pf0vf1", "vlan"))
	}
}

func TestVFWithAForeignClientIsRefused(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	startHost(t, folder)
	startAgent(t, folder, newKube(claim("first", "", "pf1vf1"), claim("second", "", "pf1vf0")))
	kubelet, _ := registerDRA(t, folder)
	if answer := kubelet.prepare(claim("first", "", "pf1vf1")); answer.Error != "" {
		t.Fatal(answer.Error)
	}
	client, err := net.Dial("unix", filepath.Join(folder, "rt/pf1vf0/vf.sock"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "prepare names the client", func() bool {
		answer := kubelet.prepare(claim("second", "", "pf1vf0"))
		return strings.Contains(answer.Error, "VF pf1vf0 is in use by process")
	})
	client.Close()
	eventually(t, "the VF is free", func() bool { return kubelet.prepare(claim("second", "", "pf1vf0")).Error == "" })
}

func TestVMMThatOutlivesItsPodIsDisconnected(t *testing.T) {
	t.Parallel()
	folder, host, _, kubelet := prepareFirst(t)
	client, err := net.Dial("unix", filepath.Join(folder, "rt/pf0vf1/vf.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	eventually(t, "the host accepts the client", func() bool {
		vf, err := host.client.VF(context.Background(), "pf0vf1")
		return err == nil && vf.Peer != nil
	})
	if fault := kubelet.unprepare(claim("first", "", "pf0vf1")); fault != "" {
		t.Fatal(fault)
	}
	if err := client.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("the client is still connected: %v", err)
	}
}

// Reported for kubelet (kubernetes#128696): it keeps a driver whose sockets stay, although no process serves them.
func TestStoppedAgentLeavesNoSockets(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	startHost(t, folder)
	kubelet := startDeviceKubelet(t, folder)
	agent := startAgent(t, folder, newKube())
	registerDRA(t, folder)
	kubelet.plugin(1)
	agent.stop()
	for _, place := range []string{"registry", "plugins/*", "devices"} {
		left, err := filepath.Glob(filepath.Join(folder, place, "*.sock"))
		if err != nil {
			t.Fatal(err)
		}
		for _, socket := range left {
			if filepath.Base(socket) != "kubelet.sock" {
				t.Errorf("the agent leaves %s", socket)
			}
		}
	}
}

// Reported for sriov-network-device-plugin (#685): a VF kept the address of a machine that had ended without its release, and the
// machine's next VF got the same address.
func TestAddressOfAClaimThatWasNotReleasedIsRefused(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	host := startHost(t, folder)
	const address = `"mac":"02:00:00:00:aa:01"`
	first, second := claim("first", address, "pf0vf1"), claim("second", address, "pf0vf3")
	startAgent(t, folder, newKube(first, second))
	kubelet, _ := registerDRA(t, folder)
	if answer := kubelet.prepare(first); answer.Error != "" {
		t.Fatal(answer.Error)
	}
	if answer := kubelet.prepare(second); !strings.Contains(answer.Error, "pf0vf1") {
		t.Errorf("two VFs have one address: %v", answer)
	}
	if fault := kubelet.unprepare(first); fault != "" {
		t.Fatal(fault)
	}
	if answer := kubelet.prepare(second); answer.Error != "" || host.setting("pf0vf3", "mac") != `"02:00:00:00:aa:01"` {
		t.Errorf("the address of the released claim is not free: %v", answer)
	}
}

// Reported for dra-driver-nvidia-gpu (#840): a prepare that fails midway leaves its part behind.
func TestClaimThatIsPreparedInPartIsReleased(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	host := startHost(t, folder)
	// pf0vf1 allows no VLAN 300.
	broken := claim("broken", `"vlan":300`, "pf0vf0", "pf0vf1")
	agent := startAgent(t, folder, newKube(broken))
	kubelet, _ := registerDRA(t, folder)
	if answer := kubelet.prepare(broken); !strings.Contains(answer.Error, "VLAN 300") || len(specs(t, folder)) != 0 {
		t.Errorf("%v, %v", answer, specs(t, folder))
	}
	agent.stop()
	agent.start()
	kubelet, _ = registerDRA(t, folder)
	if fault := kubelet.unprepare(broken); fault != "" || host.setting("pf0vf0", "vlan") != "0" {
		t.Errorf("%q, vlan %s", fault, host.setting("pf0vf0", "vlan"))
	}
	if record, err := agentStore(t, folder).Get("broken-uid"); record != nil || err != nil {
		t.Errorf("%v, %v", record, err)
	}
}

// Reported for sriov-cni (#219): the release of a pod that comes late, or twice, resets the VF of the next pod.
func TestLateReleaseDoesNotTouchTheNextClaim(t *testing.T) {
	t.Parallel()
	_, host, agent, kubelet := prepareFirst(t)
	first, next := claim("first", "", "pf0vf1"), claim("next", `"vlan":20`, "pf0vf1")
	agent.add(next)
	if fault := kubelet.unprepare(first); fault != "" {
		t.Fatal(fault)
	}
	if answer := kubelet.prepare(next); answer.Error != "" {
		t.Fatal(answer.Error)
	}
	if fault := kubelet.unprepare(first); fault != "" || host.setting("pf0vf1", "vlan") != "20" {
		t.Errorf("%q, vlan %s", fault, host.setting("pf0vf1", "vlan"))
	}
}

// Reported for dranet (#155, #193): a device that is gone stays assigned, and pods wait for it for ever.
func TestClaimOfAVFThatIsGoneEnds(t *testing.T) {
	t.Parallel()
	folder, host, agent, kubelet := prepareFirst(t)
	host.stop()
	config := fmt.Sprintf("runtime_dir = %q\nstate_dir = %q\n[[port]]\nvfs = 1\n", filepath.Join(folder, "rt"), filepath.Join(folder, "hs"))
	if err := os.WriteFile(filepath.Join(folder, "softiov.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	host.start()
	eventually(t, "only the remaining VF is offered", func() bool {
		_, remains := agent.offered()["pf0vf0"]
		return remains && len(agent.offered()) == 1
	})
	next := claim("next", "", "pf0vf1")
	agent.add(next)
	if answer := kubelet.prepare(next); answer.Error == "" {
		t.Errorf("a VF that is gone is prepared: %v", answer)
	}
	if fault := kubelet.unprepare(claim("first", "", "pf0vf1")); fault != "" {
		t.Errorf("the claim does not end: %s", fault)
	}
	if answer := kubelet.prepare(next); !strings.Contains(answer.Error, "offers no VF pf0vf1") {
		t.Errorf("%v", answer)
	}
	if record, err := agentStore(t, folder).Get("first-uid"); record != nil || err != nil {
		t.Errorf("%v, %v", record, err)
	}
}
