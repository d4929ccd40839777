// Package podresourcestest is kubelet's server of the devices of pods, for tests.
package podresourcestest

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Server answers with the pods of the test.
type Server struct {
	api.UnimplementedPodResourcesListerServer
	// Socket is the path of the socket.
	Socket string

	mutex    sync.Mutex
	pods     []*api.PodResources
	refuses  bool
	requests int
	// held receives a value from each request, which then waits for one; nil lets requests pass.
	held chan struct{}
}

// List returns all pods.
func (s *Server) List(context.Context, *api.ListPodResourcesRequest) (*api.ListPodResourcesResponse, error) {
	s.mutex.Lock()
	held := s.held
	s.mutex.Unlock()
	if held != nil {
		held <- struct{}{}
		<-held
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.requests++
	if s.refuses {
		return nil, status.Error(codes.Unavailable, "kubelet starts")
	}
	return &api.ListPodResourcesResponse{PodResources: s.pods}, nil
}

// Set replaces the pods.
func (s *Server) Set(pods ...*api.PodResources) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.pods = pods
}

// Refuse sets whether the server refuses requests.
func (s *Server) Refuse(refuses bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.refuses = refuses
}

// Hold keeps requests without an answer. The channel has a value for each one, and the request waits until it receives another.
func (s *Server) Hold() chan struct{} {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.held = make(chan struct{})
	return s.held
}

// Requests returns the number of requests since the last call.
func (s *Server) Requests() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	requests := s.requests
	s.requests = 0
	return requests
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
	return Start(t, pods...).Socket
}

// Start answers until the end of the test.
func Start(t *testing.T, pods ...*api.PodResources) *Server {
	t.Helper()
	// The path of a socket is short, which that of a test's folder may not be.
	folder, err := os.MkdirTemp("", "pr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	server := &Server{Socket: filepath.Join(folder, "kubelet.sock"), pods: pods}
	listener, err := net.Listen("unix", server.Socket)
	if err != nil {
		t.Fatal(err)
	}
	service := grpc.NewServer()
	api.RegisterPodResourcesListerServer(service, server)
	go func() { _ = service.Serve(listener) }()
	t.Cleanup(service.Stop)
	return server
}
