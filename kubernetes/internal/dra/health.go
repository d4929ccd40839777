package dra

import (
	"context"
	"time"

	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

// healthInterval is the time between two reports if nothing changes. Kubelet forgets a report after 30 seconds.
const healthInterval = 10 * time.Second

// WatchHealthStatus reports the health of the VFs to kubelet until the context ends.
func (d *Driver) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	changes := d.watcher.Subscribe()
	defer d.watcher.Unsubscribe(changes)
	for {
		select {
		case <-ctx.Done():
			return nil
		case reports <- d.health():
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		case <-time.After(healthInterval):
		}
	}
}

// health returns the health of all VFs that claims can have. A drained VF is healthy.
func (d *Driver) health() kubeletplugin.DeviceHealthReport {
	var report kubeletplugin.DeviceHealthReport
	snapshot := d.watcher.Snapshot()
	for i := range snapshot.VFs {
		vf := &snapshot.VFs[i]
		if !d.owns(vf.Port) {
			continue
		}
		health := kubeletplugin.DeviceHealth{
			PoolName: d.node, DeviceName: vf.Name, Health: kubeletplugin.HealthStatusHealthy, LastUpdated: time.Now(),
		}
		if !vf.Healthy() {
			health.Health, health.Message = kubeletplugin.HealthStatusUnhealthy, vf.Reason
		}
		report.Devices = append(report.Devices, health)
	}
	return report
}
