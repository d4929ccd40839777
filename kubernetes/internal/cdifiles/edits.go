package cdifiles

import (
	"path"
	"path/filepath"
	"strings"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"softiov.io/kubernetes/internal/claims"
)

// ContainerSocket returns the path of a VF's socket in a container.
func ContainerSocket(vf, socket string) string {
	return path.Join(ContainerFolder, vf, filepath.Base(socket))
}

// EnvironmentName returns the name of the variable with the path of a VF's socket: SOFTIOV_VF_PF0VF1 for pf0vf1.
func EnvironmentName(vf string) string {
	return "SOFTIOV_VF_" + strings.ToUpper(strings.ReplaceAll(vf, "-", "_"))
}

// Edits returns the changes of a container that has the VF: the VF's folder, not its socket, because a host that
// restarts makes a new socket. A read-only folder still lets a VMM connect.
func Edits(device *claims.Device) specs.ContainerEdits {
	access := "ro"
	if device.Writable {
		access = "rw"
	}
	return specs.ContainerEdits{
		Env: []string{EnvironmentName(device.VF) + "=" + ContainerSocket(device.VF, device.Socket)},
		Mounts: []*specs.Mount{{
			HostPath:      device.Folder,
			ContainerPath: path.Join(ContainerFolder, device.VF),
			Options:       []string{"rbind", access, "nosuid", "nodev", "noexec"},
		}},
	}
}
