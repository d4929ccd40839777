// Package podresourcestest is kubelet's server of the devices of pods, for tests.
package podresourcestest

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// server answers with the pods of the test.
type server struct {
	api.UnimplementedPodResourcesListerServer
	pods []*api.PodResources
}

// List returns all pods.
func (s *server) List(context.Context, *api.ListPodResourcesRequest) (*api.ListPodResourcesResponse, error) {
	return &api.ListPodResourcesResponse{PodResources: s.pods}, nil
}

// Pod returns a pod with one container for each list of devices of a resource.
func Pod(namespace, name, resource string, containers ...[]string) *api.PodResources {
	pod := &api.PodResources{Namespace: namespace, Name: name}
	for _, ids := range containers {
		pod.Containers = append(pod.Containers, &api.ContainerResources{
			Devices: []*api.ContainerDevices{{ResourceName: resource, DeviceIds: ids}},
		})
	}
	return pod
}

// Serve answers until the end of the test, and returns the path of the socket.
func Serve(t *testing.T, pods ...*api.PodResources) string {
	t.Helper()
	// The path of a socket is short, which that of a test's folder may not be.
	folder, err := os.MkdirTemp("", "pr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	socket := filepath.Join(folder, "kubelet.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	service := grpc.NewServer()
	api.RegisterPodResourcesListerServer(service, &server{pods: pods})
	go func() { _ = service.Serve(listener) }()
	t.Cleanup(service.Stop)
	return socket
}
