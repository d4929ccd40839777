package dra

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/dynamic-resource-allocation/deviceattribute"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/inventory"
)

// Resources returns the VFs that claims may get, as one pool with the node's name. VFs that are unhealthy or drained, or that a
// pod has by the device plugin, are left out, so the scheduler assigns them to no new claim; claims that have them keep them.
func (d *Driver) Resources(logger klog.Logger, snapshot *inventory.Snapshot) resourceslice.DriverResources {
	var devices []resourceapi.Device
	for i := range snapshot.VFs {
		vf := &snapshot.VFs[i]
		if !d.owns(vf.Port) || !vf.Offered() {
			continue
		}
		if len(validation.IsDNS1123Label(vf.Name)) > 0 {
			logger.Info("A VF is not offered, because Kubernetes allows only lower-case letters, digits and - in names: give its port such a name",
				"vf", vf.Name)
			continue
		}
		devices = append(devices, resourceapi.Device{Name: vf.Name, Attributes: attributes(vf)})
	}
	pool := resourceslice.Pool{}
	for chunk := range slices.Chunk(devices, resourceapi.ResourceSliceMaxDevices) {
		pool.Slices = append(pool.Slices, resourceslice.Slice{Devices: chunk})
	}
	// An empty slice says that the driver runs and has nothing to offer.
	if len(pool.Slices) == 0 {
		pool.Slices = []resourceslice.Slice{{}}
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{d.node: pool}}
}

// attributes returns the attributes by which claims and device classes select a VF. They change only with the host's
// configuration, never by a claim or a guest: a change writes the slices of the node again.
func attributes(vf *inventory.VF) attributeSet {
	all := attributeSet{}
	all.text("family", vf.Family)
	all.text("port", vf.Port)
	all.text("uplink", vf.Uplink)
	all.text("vlans", vf.VLANs())
	all.text("routingID", vf.RoutingID)
	all.number("index", vf.Index)
	if low, high, ok := vf.VLANRange(); ok {
		all.number("vlanMin", low)
		all.number("vlanMax", high)
	}
	if rate := vf.LinkRate(); rate > 0 {
		all.number("rate", rate)
	}
	if vf.NUMA != nil {
		all.number(deviceattribute.StandardDeviceAttributeNUMANode, *vf.NUMA)
	}
	return all
}

// attributeSet is the attributes of a device.
type attributeSet map[resourceapi.QualifiedName]resourceapi.DeviceAttribute

// text adds a text. The API refuses longer values, and with them the whole slice.
func (s attributeSet) text(name resourceapi.QualifiedName, value string) {
	if value != "" && len(value) <= resourceapi.DeviceAttributeMaxValueLength {
		s[name] = resourceapi.DeviceAttribute{StringValue: &value}
	}
}

// number adds a number.
func (s attributeSet) number(name resourceapi.QualifiedName, value int) {
	wide := int64(value)
	s[name] = resourceapi.DeviceAttribute{IntValue: &wide}
}
