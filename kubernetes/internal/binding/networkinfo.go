package binding

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"softiov.io/kubernetes/internal/vfinfo"
)

const (
	// readAttempts and readInterval bound the wait for KubeVirt's file of networks. KubeVirt waits as long for its own use of
	// the file (pkg/virt-launcher/virtwrap/device/hostdevice/sriov, version 1.9), and its hooks have a minute.
	readAttempts = 10
	readInterval = 100 * time.Millisecond
)

// networkInfo is what KubeVirt passes on from CNI plugins, by Multus.
type networkInfo struct {
	Interfaces []networkReport `json:"interfaces"`
}

// networkReport is the report on one network.
type networkReport struct {
	Network string `json:"network"`
	MAC     string `json:"mac"`
	// DeviceInfo has the form of the Network Plumbing Working Group's device-info specification.
	DeviceInfo *struct {
		Type      string `json:"type"`
		VhostUser *struct {
			Mode string `json:"mode"`
			Path string `json:"path"`
		} `json:"vhost-user"`
	} `json:"deviceInfo"`
}

// pause waits before a further attempt to read the file, and returns false after the last one.
func pause(attempt int) bool {
	if attempt >= readAttempts {
		return false
	}
	time.Sleep(readInterval)
	return true
}

// readNetworkInfo reads the file with what CNI plugins report. KubeVirt fills it when Multus has ended, and kubelet passes
// that on later, so an empty file is read again.
func (s *Sidecar) readNetworkInfo() (*networkInfo, error) {
	wait := s.pause
	if wait == nil {
		wait = pause
	}
	for attempt := 1; ; attempt++ {
		content, err := os.ReadFile(s.NetworkInfo)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("KubeVirt gives the sidecar no %s: give the network a resourceClaim, or the binding "+
				"downwardAPI: device-info", s.NetworkInfo)
		case err != nil:
			return nil, err
		case len(content) > 0:
			info := &networkInfo{}
			if err := json.Unmarshal(content, info); err != nil {
				return nil, fmt.Errorf("read %s: %w", s.NetworkInfo, err)
			}
			return info, nil
		case !wait(attempt):
			return nil, fmt.Errorf("%s is empty, and KubeVirt fills it when Multus has ended; virt-launcher asks again", s.NetworkInfo)
		}
	}
}

// ofNetwork returns the VF that CNI plugins report for a network without a claim.
func (s *Sidecar) ofNetwork(network string) (vfinfo.Info, error) {
	info, err := s.readNetworkInfo()
	if err != nil {
		return vfinfo.Info{}, fmt.Errorf("no VF is known for network %s: %w", network, err)
	}
	at := slices.IndexFunc(info.Interfaces, func(report networkReport) bool { return report.Network == network })
	if at < 0 {
		return vfinfo.Info{}, fmt.Errorf("network %s is not among those that CNI plugins report (%s); give the network a "+
			"resourceClaim, or a NetworkAttachmentDefinition of type softiov-cni", network, info.names())
	}
	report := info.Interfaces[at]
	switch device := report.DeviceInfo; {
	case device == nil:
		return vfinfo.Info{}, fmt.Errorf("the report on network %s has no description of a device: declare the capability "+
			"CNIDeviceInfoFile in its NetworkAttachmentDefinition, of type softiov-cni; VFs of other families than virtio need "+
			"a resourceClaim", network)
	case device.VhostUser == nil:
		return vfinfo.Info{}, fmt.Errorf("network %s has a device of type %s, and no VF of family virtio; give it a "+
			"NetworkAttachmentDefinition of type softiov-cni", network, device.Type)
	case device.VhostUser.Mode == "server":
		return vfinfo.Info{}, fmt.Errorf("network %s has a device whose VMM listens, and no VF of SoftIOV; give it a "+
			"NetworkAttachmentDefinition of type softiov-cni", network)
	default:
		return vfinfo.Info{Protocol: vfinfo.VhostUser, Socket: device.VhostUser.Path, MAC: report.MAC}, nil
	}
}

// names returns the networks with a report.
func (n *networkInfo) names() string {
	var all []string
	for _, report := range n.Interfaces {
		all = append(all, report.Network)
	}
	return enumeration(all)
}
