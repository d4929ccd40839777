// Package podresources asks kubelet which devices of device plugins a pod has.
package podresources

import (
	"context"
	"fmt"
	"slices"
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

// Device is a device that kubelet has given to a pod.
type Device struct{ Namespace, Pod, Resource, ID string }

// Title returns namespace and name of the pod.
func (d Device) Title() string { return d.Namespace + "/" + d.Pod }

// list returns all pods that kubelet reports.
func (c *Client) list(ctx context.Context) ([]*api.PodResources, error) {
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
		return nil, fmt.Errorf("kubelet has not reported the devices of pods on %s: %w; name its socket by --pod-resources", c.socket, err)
	}
	return answer.PodResources, nil
}

// All returns the devices of all pods that kubelet reports.
func (c *Client) All(ctx context.Context) ([]Device, error) {
	pods, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	var all []Device
	for _, pod := range pods {
		for _, container := range pod.Containers {
			for _, one := range container.Devices {
				for _, id := range one.DeviceIds {
					all = append(all, Device{Namespace: pod.Namespace, Pod: pod.Name, Resource: one.ResourceName, ID: id})
				}
			}
		}
	}
	return all, nil
}

// Devices returns the devices of a pod by their extended resource. A pod that kubelet does not know has none. Kubelet names pods
// without their UID: while it ends a pod that has a successor of the same name, the two cannot be distinguished.
func (c *Client) Devices(ctx context.Context, namespace, name string) (map[string][]string, error) {
	pods, err := c.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("pod %s/%s: %w", namespace, name, err)
	}
	pods = slices.DeleteFunc(pods, func(pod *api.PodResources) bool { return pod.Namespace != namespace || pod.Name != name })
	if len(pods) > 1 {
		return nil, fmt.Errorf("kubelet has %d pods %s/%s, of which all but one are ending; try again", len(pods), namespace, name)
	}
	devices := map[string][]string{}
	for _, pod := range pods {
		for _, container := range pod.Containers {
			for _, one := range container.Devices {
				devices[one.ResourceName] = append(devices[one.ResourceName], one.DeviceIds...)
			}
		}
	}
	return devices, nil
}
