package deviceplugin

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/holders"
	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/host/hosttest"
	"softiov.io/kubernetes/internal/inventory"
	"softiov.io/kubernetes/internal/podresources"
	"softiov.io/kubernetes/internal/podresources/podresourcestest"
)

// stream is kubelet's end of a stream of devices.
type stream struct {
	grpc.ServerStream
	ctx  context.Context
	sent chan *api.ListAndWatchResponse
	// waits receives a value each time the plugin waits for the next notification.
	waits chan struct{}
}

// open starts a stream of a server, and returns when the plugin has consumed its first notification without sending a list.
func open(t *testing.T, server *server) *stream {
	t.Helper()
	kubelet := &stream{ctx: t.Context(), sent: make(chan *api.ListAndWatchResponse), waits: make(chan struct{}, 100)}
	go func() { _ = server.ListAndWatch(&api.Empty{}, kubelet) }()
	for range 2 {
		select {
		case <-kubelet.waits:
		case early := <-kubelet.sent:
			t.Fatalf("a list that may lack VFs or give them away: %v", early.Devices)
		}
	}
	return kubelet
}

// Context returns the context of the call. The plugin calls it whenever it waits.
func (s *stream) Context() context.Context {
	s.waits <- struct{}{}
	return s.ctx
}

func (s *stream) Send(answer *api.ListAndWatchResponse) error {
	s.sent <- answer
	return nil
}

// Reported for sriov-network-operator (openshift#812): a plugin that has just started has no devices, and kubelet rejects
// the pods that it starts meanwhile.
func TestKubeletGetsNoListBeforeTheHostHasAnswered(t *testing.T) {
	client := hosttest.Start(t, func() []host.Port { return []host.Port{hosttest.Port("pf0", "virtio", "pf0vf0")} })
	watcher := inventory.NewWatcher(client, time.Hour, func() []string { return nil })
	server := &server{resource: "softiov.io/vf", watcher: watcher, owns: func(string) bool { return true }, ended: make(chan struct{}, 1)}
	kubelet := open(t, server)
	watcher.Refresh(t.Context())
	if first := <-kubelet.sent; len(first.Devices) != 1 || first.Devices[0].Health != api.Healthy {
		t.Errorf("the first list is %v", first.Devices)
	}
}

// A list without the VFs of pods would give them to others.
func TestKubeletGetsNoListBeforeItReportsTheDevicesOfPods(t *testing.T) {
	client := hosttest.Start(t, func() []host.Port { return []host.Port{hosttest.Port("pf0", "virtio", "pf0vf0")} })
	watcher := inventory.NewWatcher(client, time.Hour, func() []string { return nil })
	store, err := claims.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pods := podresources.NewClient(podresourcestest.Serve(t, podresourcestest.Pod("default", "web", "softiov.io/vf", []string{"pf0vf0"})))
	resources := filepath.Join(t.TempDir(), "resources.json")
	for _, resource := range []string{"softiov.io/vf", "softiov.io/fast"} {
		if watcher.Holders, err = holders.Open(resources, store, pods, []string{resource}); err != nil {
			t.Fatal(err)
		}
	}
	watcher.ResourceOf = func(string) string { return "softiov.io/fast" }
	watcher.Refresh(t.Context())
	server := &server{resource: "softiov.io/fast", watcher: watcher, owns: func(string) bool { return true }, ended: make(chan struct{}, 1)}
	kubelet := open(t, server)
	if err := watcher.RefreshHolders(t.Context()); err != nil {
		t.Fatal(err)
	}
	watcher.Refresh(t.Context())
	if first := <-kubelet.sent; len(first.Devices) != 1 || first.Devices[0].Health != api.Unhealthy {
		t.Errorf("the first list is %v", first.Devices)
	}
}

// Reported for sriov-network-device-plugin (#752): kubelet merges the answers for a container's resources, and one of two equal
// keys wins.
func TestResourcesOfOneContainerShareNoVariable(t *testing.T) {
	client := hosttest.Start(t, func() []host.Port {
		return []host.Port{hosttest.Port("pf0", "virtio", "pf0vf0"), hosttest.Port("pf1", "avf", "pf1vf0", "pf1vf1")}
	})
	watcher := inventory.NewWatcher(client, time.Hour, func() []string { return nil })
	watcher.Refresh(t.Context())
	variables, mounts := map[string]string{}, map[string]string{}
	for resource, ids := range map[string][]string{"softiov.io/pf0": {"pf0vf0"}, "softiov.io/pf1": {"pf1vf0", "pf1vf1"}} {
		server := &server{resource: resource, watcher: watcher, owns: func(port string) bool { return strings.HasSuffix(resource, port) }}
		answer, err := server.Allocate(t.Context(), &api.AllocateRequest{ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: ids}}})
		if err != nil {
			t.Fatal(err)
		}
		for name := range answer.ContainerResponses[0].Envs {
			if other, taken := variables[name]; taken {
				t.Errorf("%s is a variable of %s and %s", name, other, resource)
			}
			variables[name] = resource
		}
		for _, mount := range answer.ContainerResponses[0].Mounts {
			if other, taken := mounts[mount.ContainerPath]; taken {
				t.Errorf("%s is a mount of %s and %s", mount.ContainerPath, other, resource)
			}
			mounts[mount.ContainerPath] = resource
		}
	}
	if len(variables) != 10 || len(mounts) != 3 {
		t.Errorf("variables %v, mounts %v", variables, mounts)
	}
}
