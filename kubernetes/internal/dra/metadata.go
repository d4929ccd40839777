package dra

import (
	"cmp"
	"encoding/json"
	"path"
	"path/filepath"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/inventory"
	"softiov.io/kubernetes/internal/vfinfo"
)

// metadata returns the attributes and address of a VF for the container's metadata file. A VF that the host has not shown since
// the agent's start has the attributes of its record.
func metadata(record *claims.Record, device *claims.Device, snapshot *inventory.Snapshot) *kubeletplugin.DeviceMetadata {
	all := attributeSet{}
	vf, found := snapshot.Find(device.VF)
	if found {
		all = attributes(&vf)
	}
	info := vfinfo.Of(record, device)
	all.text("family", info.Family)
	all.text("protocol", info.Protocol)
	socket := info.Socket
	if len(socket) > resourceapi.DeviceAttributeMaxValueLength {
		// Names of claims may be long, and those of VFs are not.
		socket = path.Join(vfinfo.VFFolder(device.VF), filepath.Base(device.Socket))
	}
	all.text("socket", socket)
	var vlan int
	if set := cmp.Or(string(device.Wanted["vlan"]), string(vf.Settings["vlan"])); json.Unmarshal([]byte(set), &vlan) == nil {
		all.number("vlan", vlan)
	}
	metadata := &kubeletplugin.DeviceMetadata{Attributes: map[string]resourceapi.DeviceAttribute{}}
	for name, value := range all {
		metadata.Attributes[string(name)] = value
	}
	if device.MAC != "" {
		metadata.NetworkData = &resourceapi.NetworkDeviceData{HardwareAddress: device.MAC}
	}
	return metadata
}
