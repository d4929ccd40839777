// Package vfinfo is the description of a VF that a container finds in its environment.
package vfinfo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"softiov.io/kubernetes/internal/claims"
)

const (
	// Folder holds the folders of a container's VFs.
	Folder = "/run/softiov"
	// maxSocketPath is the greatest length of a socket's path (sun_path in unix(7), less the final zero).
	maxSocketPath = 107
	// socketPrefix begins the variable with the path of a VF's socket.
	socketPrefix = "SOFTIOV_VF_"
	// infoPrefix begins the variable with the description of a VF.
	infoPrefix = "SOFTIOV_INFO_"
)

// Protocols of a VF's socket.
const (
	VfioUser  = "vfio-user"
	VhostUser = "vhost-user"
)

// Protocol returns the protocol of the sockets of a family.
func Protocol(family string) string {
	if family == "virtio" {
		return VhostUser
	}
	return VfioUser
}

// Info describes one VF of a container.
type Info struct {
	VF       string `json:"vf"`
	Family   string `json:"family"`
	Protocol string `json:"protocol"`
	// Socket is the path in the container. The VF of a claim has a path that depends only on claim and request, so that it
	// is the same on the target of a live migration.
	Socket string `json:"socket"`
	// MAC is the address with which the guest's frames pass the VF.
	MAC string `json:"mac,omitempty"`
	// Claim is the name of the ResourceClaim, and empty for a VF of the device plugin.
	Claim string `json:"claim,omitempty"`
	// PodClaim is the name of the claim in the pod's specification, if the claim was made from a template.
	PodClaim string `json:"podClaim,omitempty"`
	// Request is the name of the request in the claim, without the name of a chosen alternative.
	Request string `json:"request,omitempty"`
}

// SocketVariable returns the name of the variable with the path of a VF's socket: SOFTIOV_VF_PF0VF1 for pf0vf1.
func SocketVariable(vf string) string { return socketPrefix + shout(vf) }

// InfoVariable returns the name of the variable with the description of a VF: SOFTIOV_INFO_PF0VF1 for pf0vf1.
func InfoVariable(vf string) string { return infoPrefix + shout(vf) }

func shout(vf string) string { return strings.ToUpper(strings.ReplaceAll(vf, "-", "_")) }

// VFFolder returns the container's folder of a VF, by the name of the VF.
func VFFolder(vf string) string { return path.Join(Folder, vf) }

// Of returns the description of a VF of a claim. The record of the device plugin has no name and no claim.
func Of(record *claims.Record, device *claims.Device) Info {
	info := Info{
		VF: device.VF, Family: device.Family, Protocol: Protocol(device.Family), MAC: device.MAC,
		Claim: record.Name, PodClaim: record.PodClaim,
		Socket: path.Join(VFFolder(device.VF), filepath.Base(device.Socket)),
	}
	if len(device.Requests) == 1 {
		info.Request, _, _ = strings.Cut(device.Requests[0], "/")
	}
	if folder := ClaimFolder(record, device); folder != "" {
		info.Socket = path.Join(folder, filepath.Base(device.Socket))
	}
	return info
}

// ClaimFolder returns the container's folder of a VF by claim and request, or "" if it has none: a request with several
// VFs, a VF of the device plugin, or names that are too long for a socket's path or would leave their folder.
func ClaimFolder(record *claims.Record, device *claims.Device) string {
	if record.Name == "" || len(device.Requests) != 1 {
		return ""
	}
	request, _, _ := strings.Cut(device.Requests[0], "/")
	same := func(other claims.Device) bool {
		return slices.ContainsFunc(other.Requests, func(name string) bool {
			parent, _, _ := strings.Cut(name, "/")
			return other.VF != device.VF && parent == request
		})
	}
	folder := strings.Join([]string{Folder, "claim", record.Name, request}, "/")
	if record.PodClaim != "" {
		folder = strings.Join([]string{Folder, "template", record.PodClaim, request}, "/")
	}
	// An earlier agent may have written names into the record that this one refuses.
	if path.Clean(folder) != folder {
		return ""
	}
	if slices.ContainsFunc(record.Devices, same) || len(path.Join(folder, filepath.Base(device.Socket))) > maxSocketPath {
		return ""
	}
	return folder
}

// Variables returns the variables of a VF in the form NAME=VALUE.
func (i *Info) Variables() []string {
	// A structure of strings and switches always has a JSON form.
	encoded, _ := json.Marshal(i)
	socket := path.Join(VFFolder(i.VF), path.Base(i.Socket))
	return []string{SocketVariable(i.VF) + "=" + socket, InfoVariable(i.VF) + "=" + string(encoded)}
}

// FromEnvironment returns the VFs that variables in the form NAME=VALUE describe, sorted by name.
func FromEnvironment(variables []string) ([]Info, error) {
	var all []Info
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, infoPrefix) {
			continue
		}
		var info Info
		if err := json.Unmarshal([]byte(value), &info); err != nil {
			return nil, fmt.Errorf("the variable %s is not a VF's description: %w", name, err)
		}
		if info.VF == "" || info.Socket == "" {
			return nil, fmt.Errorf("the variable %s has no vf or no socket: %s", name, value)
		}
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b Info) int { return cmp.Compare(a.VF, b.VF) })
	return all, nil
}
