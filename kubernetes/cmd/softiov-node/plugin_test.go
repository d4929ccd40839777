package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"softiov.io/kubernetes/internal/admin"
	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/podresources/podresourcestest"
)

// setVLAN does what `softiov vf set --vlan` does.
func setVLAN(t *testing.T, h *testHost, vf, vlan string) {
	t.Helper()
	change := host.Change{Set: host.Settings{"vlan": json.RawMessage(vlan)}}
	if err := h.client.ChangeVF(context.Background(), vf, change); err != nil {
		t.Fatal(err)
	}
}

// healthy is what kubelet sees of the device plugin's port, if nothing is wrong.
var healthy = map[string]string{"pf2vf0": api.Healthy, "pf2vf1": api.Healthy}

func TestDevicePluginRegistersAndAllocates(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	startHost(t, folder)
	kubelet := startDeviceKubelet(t, folder)
	startAgent(t, folder, newKube())
	plugin, request := kubelet.plugin(1)
	if request.ResourceName != "softiov.io/virtio" || request.Version != api.Version {
		t.Errorf("registered %v", request)
	}
	watch := watchDevices(t, plugin)
	eventually(t, "kubelet sees both VFs", func() bool { return watch.has(healthy) })

	answer, err := plugin.Allocate(context.Background(), &api.AllocateRequest{
		ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: []string{"pf2vf0", "pf2vf1"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	container := answer.ContainerResponses[0]
	if len(container.Mounts) != 2 || container.Mounts[0].HostPath != filepath.Join(folder, "rt/pf2vf0") ||
		container.Mounts[0].ContainerPath != "/run/softiov/pf2vf0" || !container.Mounts[0].ReadOnly {
		t.Errorf("mounts %v", container.Mounts)
	}
	if container.Envs["PCIDEVICE_SOFTIOV_IO_VIRTIO"] != "pf2vf0,pf2vf1" {
		t.Errorf("variables %v", container.Envs)
	}
	var info map[string]map[string]map[string]string
	if err := json.Unmarshal([]byte(container.Envs["PCIDEVICE_SOFTIOV_IO_VIRTIO_INFO"]), &info); err != nil ||
		info["pf2vf1"]["vhost-user"]["socket"] != "/run/softiov/pf2vf1/vf.sock" || info["pf2vf1"]["generic"]["deviceID"] != "pf2vf1" {
		t.Errorf("info %v, %v", info, err)
	}
	_, err = plugin.Allocate(context.Background(), &api.AllocateRequest{
		ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: []string{"pf0vf0"}}},
	})
	if err == nil || !strings.Contains(err.Error(), "no VF pf0vf0 for softiov.io/virtio") {
		t.Errorf("a VF of another port is allocated: %v", err)
	}
}

func TestDevicePluginRegistersAgainAfterKubeletRestarts(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	startHost(t, folder)
	kubelet := startDeviceKubelet(t, folder)
	startAgent(t, folder, newKube())
	kubelet.plugin(1)
	kubelet.server.Stop()
	// A new kubelet removes all sockets before it listens.
	next := startDeviceKubelet(t, folder)
	plugin, _ := next.plugin(1)
	watch := watchDevices(t, plugin)
	eventually(t, "the new kubelet sees both VFs", func() bool { return watch.has(healthy) })
}

// Reported for sriov-network-device-plugin (#411): without its socket the plugin is lost until an administrator restarts it.
func TestDevicePluginRegistersAgainWithoutItsSocket(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	startHost(t, folder)
	kubelet := startDeviceKubelet(t, folder)
	startAgent(t, folder, newKube())
	_, request := kubelet.plugin(1)
	if err := os.Remove(filepath.Join(folder, "devices", request.Endpoint)); err != nil {
		t.Fatal(err)
	}
	plugin, _ := kubelet.plugin(2)
	if _, err := plugin.GetDevicePluginOptions(context.Background(), &api.Empty{}, grpc.WaitForReady(true)); err != nil {
		t.Error(err)
	}
}

// Reported for device-plugin-manager (#32): kubelet closes its connection, and the plugin writes to it for ever.
func TestDevicePluginRegistersAgainWhenKubeletClosesItsConnection(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	startHost(t, folder)
	kubelet := startDeviceKubelet(t, folder)
	startAgent(t, folder, newKube())
	plugin, _ := kubelet.plugin(1)
	watch := watchDevices(t, plugin)
	eventually(t, "kubelet sees both VFs", func() bool { return watch.has(healthy) })
	watch.cancel()
	kubelet.plugin(2)
}

func TestHealthFollowsHostAndQuarantine(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	h := startHost(t, folder)
	kubelet := startDeviceKubelet(t, folder)
	agent := startAgent(t, folder, newKube())
	plugin, _ := kubelet.plugin(1)
	watch := watchDevices(t, plugin)
	eventually(t, "both VFs are healthy", func() bool { return watch.has(healthy) })

	quarantine := host.Change{Set: host.Settings{"quarantine": json.RawMessage("true")}}
	for _, vf := range []string{"pf2vf1", "pf1vf0"} {
		if err := h.client.ChangeVF(context.Background(), vf, quarantine); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the quarantined VF is unhealthy", func() bool {
		return watch.has(map[string]string{"pf2vf0": api.Healthy, "pf2vf1": api.Unhealthy})
	})
	eventually(t, "claims get no quarantined VF", func() bool {
		_, offered := agent.offered()["pf1vf0"]
		return !offered && len(agent.offered()) == 5
	})
	h.stop()
	eventually(t, "no VF is healthy without the host", func() bool {
		return watch.has(map[string]string{"pf2vf0": api.Unhealthy, "pf2vf1": api.Unhealthy}) && len(agent.offered()) == 0
	})
	h.start()
	eventually(t, "the VF is healthy again", func() bool {
		return watch.has(map[string]string{"pf2vf0": api.Healthy, "pf2vf1": api.Unhealthy}) && len(agent.offered()) == 5
	})
}

func TestAgentTellsTheVFsOfAPod(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	startHost(t, folder)
	pods := podresourcestest.Serve(t,
		podresourcestest.Pod("default", "web", "softiov.io/virtio", []string{"pf2vf1", "pf9vf0"}),
		// Another plugin may have the same name for a device.
		podresourcestest.Pod("default", "other", "example.com/nic", []string{"pf2vf0"}),
		// VFs of pf0 are for claims.
		podresourcestest.Pod("default", "claims", "softiov.io/virtio", []string{"pf0vf0"}),
	)
	startAgent(t, folder, newKube(), func(c *config) { c.podResources = pods })
	client := admin.NewClient(filepath.Join(folder, "as", admin.SocketName))
	eventually(t, "the agent knows the VFs", func() bool {
		status, err := client.Status()
		return err == nil && len(status.VFs) == 8
	})
	for pod, want := range map[string][]string{"web": {"pf2vf1"}, "other": {}, "claims": {}, "none": {}} {
		if got, err := client.PodVFs("default", pod); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", pod, got, err)
		}
	}
}

// Reported for sriov-network-device-plugin (#40): a device counted as unhealthy because a pod used it.
func TestVFInUseIsHealthyAndDrainedVFTakesNoPods(t *testing.T) {
	t.Parallel()
	folder, _, agent, _ := prepareFirst(t)
	if len(agent.offered()) != 6 {
		eventually(t, "the VF in use is offered", func() bool { return len(agent.offered()) == 6 })
	}
	client := admin.NewClient(filepath.Join(folder, "as", admin.SocketName))
	if err := client.Drain("pf7"); err == nil || !strings.Contains(err.Error(), `no port or VF "pf7"`) {
		t.Errorf("drain of an unknown port: %v", err)
	}
	if err := client.Drain("pf0"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the drained port is not offered", func() bool { return len(agent.offered()) == 2 })
	agent.stop()
	agent.start()
	kubelet, _ := registerDRA(t, folder)
	eventually(t, "the drain outlives the agent", func() bool { return len(agent.offered()) == 2 })
	// Kubelet repeats prepare for a pod that runs.
	if answer := kubelet.prepare(claim("first", "", "pf0vf1")); answer.Error != "" {
		t.Errorf("the claim on a drained VF: %s", answer.Error)
	}
	eventually(t, "the status shows claim and drain", func() bool {
		status, err := client.Status()
		if err != nil || len(status.VFs) != 8 {
			return false
		}
		claimed, plugged := status.VFs[1], status.VFs[7]
		return claimed.Resource == "" && plugged.Resource == "softiov.io/virtio" && claimed.Claim == "default/first" &&
			claimed.Drained && claimed.Healthy
	})
	if err := client.Release("first-uid"); err != nil {
		t.Error(err)
	}
	if err := client.Undrain("pf0"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the port is offered again", func() bool { return len(agent.offered()) == 6 })
}
