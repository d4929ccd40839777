package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"softiov.io/kubernetes/internal/podresources/podresourcestest"
)

// allocate calls Allocate for one container, and returns the error's text.
func allocate(plugin api.DevicePluginClient, vf string) string {
	request := &api.AllocateRequest{ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: []string{vf}}}}
	if _, err := plugin.Allocate(context.Background(), request); err != nil {
		return err.Error()
	}
	return ""
}

// restart replaces the agent by one with another --device-plugin, as an upgrade of the chart does.
func (a *testAgent) restart(devicePlugin string) {
	a.t.Helper()
	a.stop()
	a.config.devicePlugin = devicePlugin
	a.start()
}

// Reported for sriov-network-device-plugin (#369): two pods get one VF.
func TestDevicePluginOffersNoVFOfAClaim(t *testing.T) {
	t.Parallel()
	folder, _, agent, _ := prepareFirst(t)
	devices := startDeviceKubelet(t, folder)
	agent.restart("pf0")
	plugin, _ := devices.plugin(1)
	watch := watchDevices(t, plugin)
	eventually(t, "the VF of the claim is unhealthy, and the others are not", func() bool {
		return watch.has(map[string]string{"pf0vf0": api.Healthy, "pf0vf1": api.Unhealthy, "pf0vf2": api.Healthy, "pf0vf3": api.Healthy})
	})
	for _, want := range []string{"claim default/first (first-uid) has VF pf0vf1", "softiov-node release first-uid"} {
		if fault := allocate(plugin, "pf0vf1"); !strings.Contains(fault, want) {
			t.Errorf("%q lacks %q", fault, want)
		}
	}
	if fault := allocate(plugin, "pf0vf2"); fault != "" {
		t.Errorf("a VF without a claim: %s", fault)
	}
	claims, _ := registerDRA(t, folder)
	if fault := claims.unprepare(claim("first", "", "pf0vf1")); fault != "" {
		t.Fatal(fault)
	}
	eventually(t, "the VF is healthy when the claim has ended", func() bool {
		return watch.has(map[string]string{"pf0vf0": api.Healthy, "pf0vf1": api.Healthy, "pf0vf2": api.Healthy, "pf0vf3": api.Healthy})
	})
	if fault := allocate(plugin, "pf0vf1"); fault != "" {
		t.Errorf("the VF of an ended claim: %s", fault)
	}
}

// The new agent has to rebuild the record before it offers a VF, although claims get no VF of the port any more.
func TestVFOfADamagedRecordIsNotGivenToPods(t *testing.T) {
	t.Parallel()
	folder, _, agent, _ := prepareFirst(t)
	devices := startDeviceKubelet(t, folder)
	agent.stop()
	if err := os.WriteFile(filepath.Join(folder, "as/claims/first-uid.json"), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	agent.restart("pf0")
	plugin, _ := devices.plugin(1)
	watch := watchDevices(t, plugin)
	eventually(t, "kubelet has a list", func() bool { return len(watch.first()) > 0 })
	if first := watch.first(); first["pf0vf1"] != api.Unhealthy || first["pf0vf0"] != api.Healthy {
		t.Errorf("the first list is %v", first)
	}
	if fault, want := allocate(plugin, "pf0vf1"), "claim default/first (first-uid) has VF pf0vf1"; !strings.Contains(fault, want) {
		t.Errorf("%q lacks %q", fault, want)
	}
	claims, _ := registerDRA(t, folder)
	if fault := claims.unprepare(claim("first", "", "pf0vf1")); fault != "" {
		t.Fatal(fault)
	}
	eventually(t, "the VF is healthy when the claim has ended", func() bool {
		return watch.has(map[string]string{
			"pf0vf0": api.Healthy, "pf0vf1": api.Healthy, "pf0vf2": api.Healthy, "pf0vf3": api.Healthy,
		})
	})
}

func TestClaimGetsNoVFOfADevicePluginsPod(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	startHost(t, folder)
	pods := podresourcestest.Start(t)
	next := claim("next", "", "pf2vf0")
	agent := startAgent(t, folder, newKube(next), func(c *config) { c.podResources = pods.Socket })
	eventually(t, "claims get the VFs of pf0 and pf1", func() bool { return len(agent.offered()) == 6 })
	pods.Set(
		podresourcestest.Pod("default", "web", "softiov.io/virtio", []string{"pf2vf0"}),
		// A device of another plugin with the name of a VF.
		podresourcestest.Pod("default", "other", "example.com/nic", []string{"pf2vf1"}),
	)
	agent.restart("")
	eventually(t, "claims get the VFs of pf2, but that of the pod", func() bool {
		_, taken := agent.offered()["pf2vf0"]
		return len(agent.offered()) == 7 && !taken
	})
	kubelet, _ := registerDRA(t, folder)
	for _, want := range []string{"claim default/next: ", "pod default/web has VF pf2vf0 as softiov.io/virtio", "delete the pod"} {
		if answer := kubelet.prepare(next); !strings.Contains(answer.Error, want) {
			t.Errorf("%q lacks %q", answer.Error, want)
		}
	}
	pods.Set()
	eventually(t, "claims get the VF when the pod has ended", func() bool { return len(agent.offered()) == 8 })
	if answer := kubelet.prepare(next); answer.Error != "" {
		t.Error(answer.Error)
	}
}

// Reported for sriov-network-device-plugin (#245): a resource gets another name while pods run.
func TestRenamedResourceHasNoVFOfAnEarlierPod(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	startHost(t, folder)
	devices := startDeviceKubelet(t, folder)
	pods := podresourcestest.Start(t, podresourcestest.Pod("default", "web", "softiov.io/virtio", []string{"pf2vf1"}))
	agent := startAgent(t, folder, newKube(), func(c *config) { c.podResources = pods.Socket })
	plugin, _ := devices.plugin(1)
	watch := watchDevices(t, plugin)
	eventually(t, "kubelet itself counts the pods of the resource", func() bool { return watch.has(healthy) })
	agent.restart("pf2=softiov.io/fast")
	plugin, request := devices.plugin(2)
	if request.ResourceName != "softiov.io/fast" {
		t.Fatalf("registered %v", request)
	}
	watch = watchDevices(t, plugin)
	eventually(t, "the VF of the pod is unhealthy", func() bool {
		return watch.has(map[string]string{"pf2vf0": api.Healthy, "pf2vf1": api.Unhealthy})
	})
	if fault := allocate(plugin, "pf2vf1"); !strings.Contains(fault, "pod default/web has VF pf2vf1 as softiov.io/virtio") {
		t.Error(fault)
	}
	pods.Set()
	eventually(t, "the VF is healthy when the pod has ended", func() bool { return watch.has(healthy) })
}

// Without kubelet's answer a VF may be in use.
func TestClaimIsRefusedUntilKubeletReportsTheDevicesOfPods(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	startHost(t, folder)
	next := claim("next", "", "pf0vf0")
	agent := startAgent(t, folder, newKube(next), func(c *config) { c.podResources = filepath.Join(folder, "missing.sock") })
	kubelet, _ := registerDRA(t, folder)
	if answer := kubelet.prepare(next); !strings.Contains(answer.Error, "name its socket by --pod-resources") {
		t.Errorf("prepare: %q", answer.Error)
	}
	agent.stop()
	agent.config.podResources = podresourcestest.Serve(t)
	agent.start()
	eventually(t, "claims get the VFs of pf0 and pf1", func() bool { return len(agent.offered()) == 6 })
	kubelet, _ = registerDRA(t, folder)
	if answer := kubelet.prepare(next); answer.Error != "" {
		t.Error(answer.Error)
	}
}
