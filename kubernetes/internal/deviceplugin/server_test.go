package deviceplugin

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/host/hosttest"
	"softiov.io/kubernetes/internal/inventory"
)

// stream is kubelet's end of a stream of devices.
type stream struct {
	grpc.ServerStream
	ctx  context.Context
	sent chan *api.ListAndWatchResponse
}

func (s *stream) Context() context.Context { return s.ctx }

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
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	kubelet := &stream{ctx: ctx, sent: make(chan *api.ListAndWatchResponse)}
	go func() { _ = server.ListAndWatch(&api.Empty{}, kubelet) }()
	watcher.Refresh(ctx)
	if first := <-kubelet.sent; len(first.Devices) != 1 || first.Devices[0].Health != api.Healthy {
		t.Errorf("the first list is %v", first.Devices)
	}
}
