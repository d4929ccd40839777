package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	resourceapi "k8s.io/api/resource/v1"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// callTimeout bounds one call of the kubelet under test.
const callTimeout = 30 * time.Second

// dial connects to a plugin's socket.
func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

// draKubelet is kubelet's side of a DRA driver.
type draKubelet struct {
	t    *testing.T
	node drapb.DRAPluginClient
}

// registerDRA does what kubelet does when it finds a registration socket, and returns the services that the driver offers.
func registerDRA(t *testing.T, folder string) (*draKubelet, *registration.PluginInfo) {
	t.Helper()
	var sockets []string
	eventually(t, "the driver's registration socket appears", func() bool {
		sockets, _ = filepath.Glob(filepath.Join(folder, "registry", "*-reg.sock"))
		return len(sockets) == 1
	})
	client := registration.NewRegistrationClient(dial(t, sockets[0]))
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	info, err := client.GetInfo(ctx, &registration.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.NotifyRegistrationStatus(ctx, &registration.RegistrationStatus{PluginRegistered: true}); err != nil {
		t.Fatal(err)
	}
	return &draKubelet{t: t, node: drapb.NewDRAPluginClient(dial(t, info.Endpoint))}, info
}

// prepare calls NodePrepareResources for one claim.
func (k *draKubelet) prepare(claim *resourceapi.ResourceClaim) *drapb.NodePrepareResourceResponse {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	answer, err := k.node.NodePrepareResources(ctx, &drapb.NodePrepareResourcesRequest{Claims: []*drapb.Claim{reference(claim)}})
	if err != nil {
		return &drapb.NodePrepareResourceResponse{Error: err.Error()}
	}
	return answer.Claims[string(claim.UID)]
}

// unprepare calls NodeUnprepareResources for one claim, and returns the error's text.
func (k *draKubelet) unprepare(claim *resourceapi.ResourceClaim) string {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	answer, err := k.node.NodeUnprepareResources(ctx, &drapb.NodeUnprepareResourcesRequest{Claims: []*drapb.Claim{reference(claim)}})
	if err != nil {
		return err.Error()
	}
	return answer.Claims[string(claim.UID)].Error
}

func reference(claim *resourceapi.ResourceClaim) *drapb.Claim {
	return &drapb.Claim{Namespace: claim.Namespace, Name: claim.Name, Uid: string(claim.UID)}
}

// deviceKubelet is kubelet's registration server for device plugins.
type deviceKubelet struct {
	api.UnimplementedRegistrationServer
	t      *testing.T
	folder string
	server *grpc.Server

	mutex      sync.Mutex
	registered []*api.RegisterRequest
}

// startDeviceKubelet removes all sockets of the folder, as kubelet does, and listens.
func startDeviceKubelet(t *testing.T, folder string) *deviceKubelet {
	t.Helper()
	k := &deviceKubelet{t: t, folder: filepath.Join(folder, "devices")}
	sockets, _ := filepath.Glob(filepath.Join(k.folder, "*.sock"))
	for _, socket := range sockets {
		if err := os.Remove(socket); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("unix", filepath.Join(k.folder, "kubelet.sock"))
	if err != nil {
		t.Fatal(err)
	}
	k.server = grpc.NewServer()
	api.RegisterRegistrationServer(k.server, k)
	go func() { _ = k.server.Serve(listener) }()
	t.Cleanup(k.server.Stop)
	return k
}

// Register stores the plugin's request.
func (k *deviceKubelet) Register(_ context.Context, request *api.RegisterRequest) (*api.Empty, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.registered = append(k.registered, request)
	return &api.Empty{}, nil
}

// plugin waits for a number of registrations, and returns a client of the last.
func (k *deviceKubelet) plugin(count int) (api.DevicePluginClient, *api.RegisterRequest) {
	k.t.Helper()
	var last *api.RegisterRequest
	eventually(k.t, "the plugin registers", func() bool {
		k.mutex.Lock()
		defer k.mutex.Unlock()
		if len(k.registered) < count {
			return false
		}
		last = k.registered[len(k.registered)-1]
		return true
	})
	return api.NewDevicePluginClient(dial(k.t, filepath.Join(k.folder, last.Endpoint))), last
}

// deviceWatch is the lists of devices that a plugin sent.
type deviceWatch struct {
	mutex sync.Mutex
	// earliest is the first list, and devices the last one.
	earliest, devices map[string]string
	cancel            context.CancelFunc
}

// first returns the health of devices in the first list, or nil before it.
func (w *deviceWatch) first() map[string]string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.earliest
}

// watchDevices opens the stream of devices.
func watchDevices(t *testing.T, client api.DevicePluginClient) *deviceWatch {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	stream, err := client.ListAndWatch(ctx, &api.Empty{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	watch := &deviceWatch{cancel: cancel}
	go func() {
		for {
			answer, err := stream.Recv()
			if err != nil {
				return
			}
			devices := map[string]string{}
			for _, device := range answer.Devices {
				devices[device.ID] = device.Health
			}
			watch.mutex.Lock()
			watch.devices = devices
			if watch.earliest == nil {
				watch.earliest = devices
			}
			watch.mutex.Unlock()
		}
	}()
	return watch
}

// has reports whether the last list consists of these devices with their health.
func (w *deviceWatch) has(want map[string]string) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.devices) != len(want) {
		return false
	}
	for id, health := range want {
		if w.devices[id] != health {
			return false
		}
	}
	return true
}
