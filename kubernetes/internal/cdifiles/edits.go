package cdifiles

import (
	specs "tags.cncf.io/container-device-interface/specs-go"

	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/vfinfo"
)

// Edits returns the changes of a container that has a VF of a claim: the VF's folder, not its socket, because a host that
// restarts makes a new socket. A read-only folder still lets a VMM connect. The folder is mounted by the VF's name, and by
// the names of claim and request.
func Edits(record *claims.Record, device *claims.Device) specs.ContainerEdits {
	folders := []string{vfinfo.VFFolder(device.VF)}
	if folder := vfinfo.ClaimFolder(record, device); folder != "" {
		folders = append(folders, folder)
	}
	info := vfinfo.Of(record, device)
	edits := specs.ContainerEdits{Env: info.Variables()}
	for _, folder := range folders {
		edits.Mounts = append(edits.Mounts, &specs.Mount{
			HostPath: device.Folder, ContainerPath: folder, Options: []string{"rbind", "ro", "nosuid", "nodev", "noexec"},
		})
	}
	return edits
}
