package binding

import (
	"fmt"
	"regexp"

	"libvirt.org/go/libvirtxml"

	"softiov.io/kubernetes/internal/vfinfo"
)

const (
	// aliasPrefix begins aliases that libvirt leaves to its users. KubeVirt finds an interface of the domain by ua-NAME.
	aliasPrefix = "ua-"
	// maxQueuePairs is the greatest number of queue pairs of a virtio VF.
	maxQueuePairs = 16
	// reconnectSeconds is the time between two attempts of the VMM to connect to a host that restarts.
	reconnectSeconds = 1
)

// addVFs returns a domain's XML with VFs, and with memory that the VMM shares with the host. A repetition replaces the VFs
// of the time before.
func addVFs(text []byte, attachments []attachment) ([]byte, error) {
	domain := &libvirtxml.Domain{}
	if err := domain.Unmarshal(string(text)); err != nil {
		return nil, fmt.Errorf("virt-launcher has sent an invalid domain: %w", err)
	}
	if err := shareMemory(domain); err != nil {
		return nil, err
	}
	if domain.Devices == nil {
		domain.Devices = &libvirtxml.DomainDeviceList{}
	}
	interfaces := map[string]string{}
	for i := range attachments {
		one := &attachments[i]
		// A VF has one client: QEMU would wait for the second connection without a word.
		if other, taken := interfaces[one.vf.Socket]; taken {
			return nil, fmt.Errorf("interface %s has the VF of interface %s; give each a VF of its own", one.Name, other)
		}
		interfaces[one.vf.Socket] = one.Name
		if err := addVF(domain, one); err != nil {
			return nil, fmt.Errorf("interface %s: %w", one.Name, err)
		}
	}
	marshalled, err := domain.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode the domain: %w", err)
	}
	return []byte(marshalled), nil
}

// addVF adds a VF in the form of its protocol.
func addVF(domain *libvirtxml.Domain, a *attachment) error {
	switch a.vf.Protocol {
	case vfinfo.VhostUser:
		return addVhostUser(domain, a)
	case vfinfo.VfioUser:
		return addVfioUser(domain, a)
	default:
		return fmt.Errorf("VF %s has the protocol %q, which this version does not know; update the sidecar", a.vf.VF, a.vf.Protocol)
	}
}

// shareMemory makes the guest's memory a file that the VMM shares with the host. A domain with huge pages and no source
// has files already.
func shareMemory(domain *libvirtxml.Domain) error {
	const shared, memfd = "shared", "memfd"
	if domain.MemoryBacking == nil {
		domain.MemoryBacking = &libvirtxml.DomainMemoryBacking{}
	}
	memory := domain.MemoryBacking
	if memory.MemoryAccess != nil && memory.MemoryAccess.Mode != shared {
		return fmt.Errorf("the domain's memory has the access mode %s, and VFs need %s", memory.MemoryAccess.Mode, shared)
	}
	memory.MemoryAccess = &libvirtxml.DomainMemoryAccess{Mode: shared}
	switch {
	case memory.MemorySource == nil && memory.MemoryHugePages == nil:
		memory.MemorySource = &libvirtxml.DomainMemorySource{Type: memfd}
	case memory.MemorySource != nil && memory.MemorySource.Type == "anonymous":
		return fmt.Errorf("the domain's memory is anonymous, and VFs need a file: %s or file", memfd)
	}
	if domain.CPU == nil || domain.CPU.Numa == nil {
		return nil
	}
	for i := range domain.CPU.Numa.Cell {
		if cell := &domain.CPU.Numa.Cell[i]; cell.MemAccess != "" && cell.MemAccess != shared {
			return fmt.Errorf("the memory of NUMA cell %d has the access mode %s, and VFs need %s", i, cell.MemAccess, shared)
		}
	}
	return nil
}

// addVhostUser adds a virtio VF as an interface.
func addVhostUser(domain *libvirtxml.Domain, a *attachment) error {
	address, err := pciAddress(a.PCIAddress)
	if err != nil {
		return err
	}
	seconds := uint(reconnectSeconds)
	socket := &libvirtxml.DomainChardevSourceUNIX{
		Path: a.vf.Socket, Mode: "client",
		Reconnect: &libvirtxml.DomainChardevSourceReconnect{Enabled: "yes", Timeout: &seconds},
	}
	model := "virtio-non-transitional"
	if a.transitional {
		model = "virtio-transitional"
	}
	device := libvirtxml.DomainInterface{
		Source: &libvirtxml.DomainInterfaceSource{VHostUser: &libvirtxml.DomainInterfaceSourceVHostUser{
			Chardev: &libvirtxml.DomainChardevSource{UNIX: socket},
		}},
		Model:   &libvirtxml.DomainInterfaceModel{Type: model},
		Alias:   &libvirtxml.DomainAlias{Name: aliasPrefix + a.Name},
		Address: address,
	}
	if a.mac != "" {
		device.MAC = &libvirtxml.DomainInterfaceMAC{Address: a.mac}
	}
	if a.BootOrder != nil {
		device.Boot = &libvirtxml.DomainDeviceBoot{Order: *a.BootOrder}
	} else {
		// With a ROM, the firmware would boot from the interface, which KubeVirt's API excludes.
		device.ROM = &libvirtxml.DomainROM{Enabled: "no"}
	}
	if a.ACPIIndex != 0 {
		device.ACPI = &libvirtxml.DomainDeviceACPI{Index: a.ACPIIndex}
	}
	if a.State == "down" {
		device.Link = &libvirtxml.DomainInterfaceLink{State: "down"}
	}
	if pairs := queuePairs(domain, a); pairs > 1 {
		device.Driver = &libvirtxml.DomainInterfaceDriver{Queues: pairs}
	}
	for i := range domain.Devices.Interfaces {
		if other := &domain.Devices.Interfaces[i]; other.Alias != nil && other.Alias.Name == device.Alias.Name {
			*other = device
			return nil
		}
	}
	domain.Devices.Interfaces = append(domain.Devices.Interfaces, device)
	return nil
}

// queuePairs returns the number of queue pairs of an interface: one, or one for each processor of the guest.
func queuePairs(domain *libvirtxml.Domain, a *attachment) uint {
	if !a.multiqueue || domain.VCPU == nil {
		return 1
	}
	// VCPU.Value is the greatest number of processors; those that run at the start may be fewer.
	processors := domain.VCPU.Value
	if domain.VCPU.Current != 0 {
		processors = domain.VCPU.Current
	}
	return min(processors, maxQueuePairs)
}

// pciForm is the form of a PCI address, as KubeVirt's.
var pciForm = regexp.MustCompile(`^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7]$`)

// pciAddress returns the address of a device in the guest, or nil if libvirt chooses one.
func pciAddress(text string) (*libvirtxml.DomainAddress, error) {
	if text == "" {
		return nil, nil
	}
	if !pciForm.MatchString(text) {
		return nil, fmt.Errorf("pciAddress %s has not the form 0000:81:01.0", text)
	}
	var domain, bus, slot, function uint
	if _, err := fmt.Sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function); err != nil {
		return nil, fmt.Errorf("pciAddress %s: %w", text, err)
	}
	return &libvirtxml.DomainAddress{
		PCI: &libvirtxml.DomainAddressPCI{Domain: &domain, Bus: &bus, Slot: &slot, Function: &function},
	}, nil
}
