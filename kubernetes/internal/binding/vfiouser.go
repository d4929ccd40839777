package binding

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"
)

const (
	// spareRootPorts is the number of root ports for devices that libvirt adds on its own: controllers, a balloon, a spare.
	spareRootPorts = 8
	// maxRootPort is the greatest index of a root port: there are 256 buses.
	maxRootPort = 254
	// deviceOption is QEMU's option that adds a device.
	deviceOption = "-device"
	// devicePrefix begins the names of devices, and portPrefix those of their root ports. The name of the interface follows.
	devicePrefix = "softiov-"
	portPrefix   = "softiov-port-"
)

// qemuDevice is the value of QEMU's option -device for a VF. libvirt has no element for such a device.
type qemuDevice struct {
	Driver    string     `json:"driver"`
	ID        string     `json:"id"`
	Bus       string     `json:"bus"`
	Address   string     `json:"addr"`
	BootIndex *uint      `json:"bootindex,omitempty"`
	Socket    qemuSocket `json:"socket"`
}

// qemuSocket is the address of a socket in QEMU's JSON form.
type qemuSocket struct {
	Type string `json:"type"`
	Path string `json:"path"`
}

// addVfioUser adds a VF as a PCI device behind a root port of its own.
func addVfioUser(domain *libvirtxml.Domain, a *attachment) error {
	// libvirt gives the alias of a user to QEMU, as the name of the port's bus.
	bus := aliasPrefix + portPrefix + a.Name
	if err := addRootPort(domain, bus); err != nil {
		return err
	}
	device := qemuDevice{
		Driver: "vfio-user-pci", ID: devicePrefix + a.Name, Bus: bus, Address: "0x0", BootIndex: a.BootOrder,
		Socket: qemuSocket{Type: "unix", Path: a.vf.Socket},
	}
	encoded, err := json.Marshal(device)
	if err != nil {
		return err
	}
	if domain.QEMUCommandline == nil {
		domain.QEMUCommandline = &libvirtxml.DomainQEMUCommandline{}
	}
	arguments := &domain.QEMUCommandline.Args
	at := slices.IndexFunc(*arguments, func(argument libvirtxml.DomainQEMUCommandlineArg) bool {
		var other qemuDevice
		return json.Unmarshal([]byte(argument.Value), &other) == nil && other.ID == device.ID
	})
	if at >= 0 {
		(*arguments)[at].Value = string(encoded)
		return nil
	}
	*arguments = append(*arguments,
		libvirtxml.DomainQEMUCommandlineArg{Value: deviceOption}, libvirtxml.DomainQEMUCommandlineArg{Value: string(encoded)})
	return nil
}

// addRootPort adds a PCIe root port with an alias that libvirt gives to no other device, unless the domain has it. libvirt
// gives free ports away from the lowest index on, and adds those that are missing below this one. It does not know that a VF
// has this port, so there must be enough lower ones for all other devices.
func addRootPort(domain *libvirtxml.Domain, alias string) error {
	if domain.OS == nil || domain.OS.Type == nil || !strings.Contains(domain.OS.Type.Machine, "q35") {
		return fmt.Errorf("the machine is not a q35, which has the PCIe root port that the VF needs")
	}
	index := uint(countDevices(domain.Devices) + spareRootPorts)
	for _, controller := range domain.Devices.Controllers {
		if controller.Alias != nil && controller.Alias.Name == alias {
			return nil
		}
		if controller.Type == "pci" && controller.Index != nil {
			index = max(index, *controller.Index)
		}
	}
	index++
	if index > maxRootPort {
		return fmt.Errorf("no PCI bus is left for the VF: the domain has %d devices", countDevices(domain.Devices))
	}
	domain.Devices.Controllers = append(domain.Devices.Controllers, libvirtxml.DomainController{
		Type: "pci", Index: &index, Model: "pcie-root-port", Alias: &libvirtxml.DomainAlias{Name: alias},
	})
	return nil
}

// countDevices returns the greatest number of root ports that a domain's devices can take.
func countDevices(devices *libvirtxml.DomainDeviceList) int {
	count := len(devices.Disks) + len(devices.Controllers) + len(devices.Filesystems) + len(devices.Interfaces) +
		len(devices.Inputs) + len(devices.Sounds) + len(devices.Videos) + len(devices.Hostdevs) + len(devices.Watchdogs) +
		len(devices.RNGs) + len(devices.Shmems) + len(devices.Memorydevs) + len(devices.Crypto)
	if devices.VSock != nil {
		count++
	}
	return count
}
