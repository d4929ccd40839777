// Package podresources asks kubelet which devices of device plugins a pod has.
package podresources

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const (
	// Socket is kubelet's socket with its default folder.
	Socket = "/var/lib/kubelet/pod-resources/kubelet.sock"
	// timeout bounds one request.
	timeout = 10 * time.Second
	// maxAnswer bounds an answer, which has all pods of the node. Multus allows as much.
	maxAnswer = 16 << 20
)

// Client sends requests to kubelet.
type Client struct{ socket string }

// NewClient returns a client of the kubelet behind a socket. It connects for each request, because kubelet makes a new
// socket when it restarts.
func NewClient(socket string) *Client { return &Client{socket: socket} }

// Devices returns the devices of a pod by their extended resource. A pod that kubelet does not know has none.
func (c *Client) Devices(ctx context.Context, namespace, name string) (map[string][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connection, err := grpc.NewClient("unix:"+c.socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	// Get asks for one pod, and older kubelets have it switched off.
	answer, err := api.NewPodResourcesListerClient(connection).List(ctx, &api.ListPodResourcesRequest{})
	if err != nil {
		return nil, fmt.Errorf("kubelet does not tell the devices of pod %s/%s on %s: %w; name its socket by --pod-resources",
			namespace, name, c.socket, err)
	}
	devices := map[string][]string{}
	for _, pod := range answer.PodResources {
		if pod.Namespace != namespace || pod.Name != name {
			continue
		}
		for _, container := range pod.Containers {
			for _, one := range container.Devices {
				devices[one.ResourceName] = append(devices[one.ResourceName], one.DeviceIds...)
			}
		}
	}
	return devices, nil
}
