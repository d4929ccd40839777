// Package deviceplugin offers VFs as an extended resource of the node, for clusters and pods without claims.
package deviceplugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"softiov.io/kubernetes/internal/cdifiles"
	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/inventory"
	"softiov.io/kubernetes/internal/vfinfo"
)

// server answers kubelet for one resource.
type server struct {
	api.UnimplementedDevicePluginServer
	resource string
	watcher  *inventory.Watcher
	// owns reports whether a port's VFs belong to the resource.
	owns func(port string) bool
	// ended receives a value when a stream of devices ends, which kubelet keeps open as long as it knows the plugin.
	ended chan<- struct{}
}

// GetDevicePluginOptions reports to kubelet which calls the plugin has.
func (s *server) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

// ListAndWatch sends the VFs to kubelet, and again after each change.
func (s *server) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	changes := s.watcher.Subscribe()
	defer s.watcher.Unsubscribe(changes)
	defer func() {
		select {
		case s.ended <- struct{}{}:
		default: // One value is enough.
		}
	}()
	var last *api.ListAndWatchResponse
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case <-changes:
		}
		snapshot := s.watcher.Snapshot()
		// Kubelet would reject pods that start before the host's first answer, as the node had no VF.
		if !snapshot.Complete() {
			continue
		}
		answer := &api.ListAndWatchResponse{Devices: s.devices(&snapshot)}
		if proto.Equal(answer, last) {
			continue
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
		last = answer
	}
}

// devices returns the VFs of the resource. Drained VFs, and those of claims and of other resources' pods, are unhealthy for
// kubelet, which has no other word for a device that takes no new pods; a pod that has one keeps it.
func (s *server) devices(snapshot *inventory.Snapshot) []*api.Device {
	var devices []*api.Device
	for i := range snapshot.VFs {
		vf := &snapshot.VFs[i]
		if !s.owns(vf.Port) {
			continue
		}
		device := &api.Device{ID: vf.Name, Health: api.Unhealthy}
		if vf.Offered() {
			device.Health = api.Healthy
		}
		if vf.NUMA != nil {
			device.Topology = &api.TopologyInfo{Nodes: []*api.NUMANode{{ID: int64(*vf.NUMA)}}}
		}
		devices = append(devices, device)
	}
	return devices
}

// GetPreferredAllocation prefers VFs of one port for one container: they reach each other without an uplink.
func (s *server) GetPreferredAllocation(_ context.Context, request *api.PreferredAllocationRequest) (*api.PreferredAllocationResponse, error) {
	snapshot := s.watcher.Snapshot()
	answer := &api.PreferredAllocationResponse{}
	for _, container := range request.ContainerRequests {
		ids := prefer(&snapshot, container.AvailableDeviceIDs, container.MustIncludeDeviceIDs, int(container.AllocationSize))
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return answer, nil
}

// Allocate returns what a container with these VFs gets. It changes nothing on the host, because kubelet does not report
// when the container ends: the policy of such VFs is that of the host's configuration.
func (s *server) Allocate(ctx context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	snapshot := s.watcher.Snapshot()
	answer := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		response, err := s.allocate(&snapshot, container.DevicesIds)
		if err != nil {
			return nil, err
		}
		klog.FromContext(ctx).Info("Allocated VFs", "resource", s.resource, "vfs", container.DevicesIds)
		answer.ContainerResponses = append(answer.ContainerResponses, response)
	}
	return answer, nil
}

// allocate returns mounts and variables of one container.
func (s *server) allocate(snapshot *inventory.Snapshot, ids []string) (*api.ContainerAllocateResponse, error) {
	response := &api.ContainerAllocateResponse{Envs: map[string]string{}}
	info := map[string]any{}
	for _, id := range ids {
		vf, found := snapshot.Find(id)
		if !found || !s.owns(vf.Port) {
			return nil, fmt.Errorf("the host offers no VF %s for %s any more: softiov vf list", id, s.resource)
		}
		if !vf.Healthy() {
			return nil, errors.New(vf.Reason)
		}
		if vf.Held != "" {
			return nil, errors.New(vf.Held)
		}
		device := vf.Device()
		edits := cdifiles.Edits(&claims.Record{}, device)
		described := vfinfo.Of(&claims.Record{}, device)
		for _, mount := range edits.Mounts {
			response.Mounts = append(response.Mounts, &api.Mount{
				HostPath: mount.HostPath, ContainerPath: mount.ContainerPath, ReadOnly: true,
			})
		}
		for _, variable := range edits.Env {
			name, value, _ := strings.Cut(variable, "=")
			response.Envs[name] = value
		}
		info[id] = map[string]any{
			"generic":          map[string]string{"deviceID": id},
			described.Protocol: map[string]string{"socket": described.Socket},
		}
	}
	// The names are those of the SR-IOV device plugin, which programs in pods look for.
	name := "PCIDEVICE_" + strings.ToUpper(strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(s.resource))
	encoded, err := json.Marshal(info)
	if err != nil {
		return nil, err
	}
	response.Envs[name] = strings.Join(ids, ",")
	response.Envs[name+"_INFO"] = string(encoded)
	return response, nil
}
