package binding

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// vmi is the part of a VirtualMachineInstance (kubevirt.io/v1) that the plugin reads.
type vmi struct {
	Spec struct {
		Domain struct {
			Devices struct {
				Interfaces []vmiInterface `json:"interfaces"`
				// Multiqueue asks for a pair of queues for each processor of the guest.
				Multiqueue   bool `json:"networkInterfaceMultiqueue"`
				Transitional bool `json:"useVirtioTransitional"`
			} `json:"devices"`
		} `json:"domain"`
		Networks       []vmiNetwork       `json:"networks"`
		ResourceClaims []vmiResourceClaim `json:"resourceClaims"`
	} `json:"spec"`
}

// vmiInterface is an interface of the guest.
type vmiInterface struct {
	Name    string `json:"name"`
	Binding *struct {
		Name string `json:"name"`
	} `json:"binding"`
	Model      string `json:"model"`
	MAC        string `json:"macAddress"`
	PCIAddress string `json:"pciAddress"`
	BootOrder  *uint  `json:"bootOrder"`
	ACPIIndex  uint   `json:"acpiIndex"`
	// State is "", up, down, or absent for an interface that is to be removed.
	State string `json:"state"`
}

// vmiNetwork is a network that an interface is connected to.
type vmiNetwork struct {
	Name string `json:"name"`
	// ResourceClaim is nil for a network without a claim.
	ResourceClaim *struct {
		ClaimName   string `json:"claimName"`
		RequestName string `json:"requestName"`
	} `json:"resourceClaim"`
}

// vmiResourceClaim is a claim of the virtual machine's pod.
type vmiResourceClaim struct {
	Name string `json:"name"`
	// ResourceClaimName is empty for a claim from a template.
	ResourceClaimName string `json:"resourceClaimName"`
}

func parseVMI(text []byte) (*vmi, error) {
	var parsed vmi
	if err := json.Unmarshal(text, &parsed); err != nil {
		return nil, fmt.Errorf("virt-launcher has sent an invalid VirtualMachineInstance: %w", err)
	}
	return &parsed, nil
}

// bound returns the interfaces with a binding, except those that are to be removed.
func (v *vmi) bound(binding string) []vmiInterface {
	return slices.DeleteFunc(slices.Clone(v.Spec.Domain.Devices.Interfaces), func(one vmiInterface) bool {
		return one.Binding == nil || one.Binding.Name != binding || one.State == "absent"
	})
}

// network returns the network of an interface.
func (v *vmi) network(name string) (vmiNetwork, error) {
	at := slices.IndexFunc(v.Spec.Networks, func(one vmiNetwork) bool { return one.Name == name })
	if at < 0 {
		return vmiNetwork{}, errors.New("spec.networks has no network with the interface's name")
	}
	return v.Spec.Networks[at], nil
}

// claim returns the claim of the pod with a name.
func (v *vmi) claim(name string) (vmiResourceClaim, error) {
	at := slices.IndexFunc(v.Spec.ResourceClaims, func(one vmiResourceClaim) bool { return one.Name == name })
	if at < 0 {
		return vmiResourceClaim{}, fmt.Errorf("spec.resourceClaims has no claim %s", name)
	}
	return v.Spec.ResourceClaims[at], nil
}
