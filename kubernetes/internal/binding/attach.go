package binding

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"softiov.io/kubernetes/internal/vfinfo"
)

// attachment is a VF with the interface that the guest sees it as.
type attachment struct {
	vmiInterface
	vf vfinfo.Info
	// mac is the address of the interface, or "" to let libvirt choose.
	mac string
	// multiqueue asks for a pair of queues for each processor of the guest.
	multiqueue, transitional bool
}

// attach returns the VF of an interface. It refuses values of the interface that the VF cannot have.
func (s *Sidecar) attach(vmi *vmi, one vmiInterface, vfs []vfinfo.Info) (attachment, error) {
	network, err := vmi.network(one.Name)
	if err != nil {
		return attachment{}, err
	}
	find := func() (vfinfo.Info, error) { return s.ofNetwork(network.Name) }
	if network.ResourceClaim != nil {
		find = func() (vfinfo.Info, error) { return ofClaim(vmi, network, vfs) }
	}
	vf, err := find()
	if err != nil {
		return attachment{}, err
	}
	devices := vmi.Spec.Domain.Devices
	found := attachment{vmiInterface: one, vf: vf, multiqueue: devices.Multiqueue, transitional: devices.Transitional}
	if found.mac, err = address(one.MAC, vf); err != nil {
		return attachment{}, err
	}
	return found, found.check()
}

// ofClaim returns the VF that a claim has for the network's request.
func ofClaim(vmi *vmi, network vmiNetwork, vfs []vfinfo.Info) (vfinfo.Info, error) {
	claim, err := vmi.claim(network.ResourceClaim.ClaimName)
	if err != nil {
		return vfinfo.Info{}, err
	}
	request := network.ResourceClaim.RequestName
	matching := slices.DeleteFunc(slices.Clone(vfs), func(vf vfinfo.Info) bool {
		if vf.Request != request {
			return true
		}
		if claim.ResourceClaimName != "" {
			return vf.PodClaim != "" || vf.Claim != claim.ResourceClaimName
		}
		return vf.PodClaim != claim.Name
	})
	switch len(matching) {
	case 1:
		return matching[0], nil
	case 0:
		return vfinfo.Info{}, fmt.Errorf("the sidecar has no VF of claim %s, request %s (it has: %s); KubeVirt gives claims of "+
			"networks to sidecars of binding plugins in versions after 1.9", claim.Name, request, names(vfs))
	default:
		return vfinfo.Info{}, fmt.Errorf("request %s of claim %s has %d VFs (%s), and an interface has one; make a request for each "+
			"interface", request, claim.Name, len(matching), names(matching))
	}
}

// address returns the address of the interface: the VF's, which is also the only one that the host lets through.
func address(wanted string, vf vfinfo.Info) (string, error) {
	if wanted == "" {
		return vf.MAC, nil
	}
	parsed, err := net.ParseMAC(wanted)
	if err != nil {
		return "", fmt.Errorf("macAddress %s is not an Ethernet address", wanted)
	}
	if vf.MAC != "" && !strings.EqualFold(parsed.String(), vf.MAC) {
		return "", fmt.Errorf("macAddress is %s, but VF %s has the address %s; set mac: %q in the claim, or leave macAddress out",
			parsed, vf.VF, vf.MAC, parsed)
	}
	return parsed.String(), nil
}

// check refuses values of the interface that have no effect on the VF's card.
func (a *attachment) check() error {
	if a.vf.Protocol == vfinfo.VhostUser {
		if a.Model != "" && a.Model != "virtio" {
			return fmt.Errorf("model %s does not fit VF %s, whose card is virtio; leave model out", a.Model, a.vf.VF)
		}
		return nil
	}
	for _, fixed := range []struct{ name, value, remedy string }{
		{"model", a.Model, "the card decides its model"},
		{"pciAddress", a.PCIAddress, "the device has a root port of its own"},
		{"state", strings.TrimPrefix(a.State, "up"), "set state: disable in the claim"},
	} {
		if fixed.value != "" {
			return fmt.Errorf("%s %s is not supported for VF %s (%s): leave it out; %s",
				fixed.name, fixed.value, a.vf.VF, a.vf.Family, fixed.remedy)
		}
	}
	if a.ACPIIndex != 0 {
		return fmt.Errorf("acpiIndex is not supported for VF %s (%s): leave it out", a.vf.VF, a.vf.Family)
	}
	return nil
}

func names(vfs []vfinfo.Info) string {
	var all []string
	for _, vf := range vfs {
		all = append(all, vf.VF)
	}
	return enumeration(all)
}

// enumeration returns names for a message.
func enumeration(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
