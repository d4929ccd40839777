package dra

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/inventory"
	"softiov.io/kubernetes/internal/policy"
)

// progress marks whether a claim was prepared before.
type progress bool

const (
	unprepared progress = false
	// prepared marks a claim whose record is lost. Its VFs have its settings already.
	prepared progress = true
)

// templateName returns the name that a pod has for a claim made from a template, as the claim's annotation says.
func templateName(claim *resourceapi.ResourceClaim) string {
	return claim.Annotations[resourceapi.PodResourceClaimAnnotation]
}

func isLabel(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// newRecord returns the record of a claim without its VFs.
func newRecord(claim *resourceapi.ResourceClaim) *claims.Record {
	record := &claims.Record{UID: string(claim.UID), Namespace: claim.Namespace, Name: claim.Name}
	// A copy of a template's claim has the annotation too, but no pod.
	if owner := metav1.GetControllerOf(claim); owner != nil && owner.Kind == "Pod" && isLabel(templateName(claim)) {
		record.PodClaim = templateName(claim)
	}
	return record
}

// resolve returns the record of a claim: its VFs of this node, each with the settings that the claim changes. It changes
// nothing.
func (d *Driver) resolve(claim *resourceapi.ResourceClaim, snapshot *inventory.Snapshot, progress progress) (*claims.Record, error) {
	// The claim's user writes annotations, and this one becomes part of a path in containers.
	if name := templateName(claim); name != "" && !isLabel(name) {
		return nil, fmt.Errorf("annotation %s is %q, and must be a DNS label; remove the annotation", resourceapi.PodResourceClaimAnnotation, name)
	}
	record := newRecord(claim)
	addresses := map[string]string{}
	for _, result := range claim.Status.Allocation.Devices.Results {
		// A claim may also have devices of other drivers.
		if result.Driver != DriverName {
			continue
		}
		device, err := d.resolveDevice(claim, &result, snapshot, progress)
		if err != nil {
			return nil, fmt.Errorf("request %s: %w", result.Request, err)
		}
		if mac := string(device.Settings["mac"]); mac != "" {
			if other, taken := addresses[mac]; taken {
				return nil, fmt.Errorf("request %s: mac: %s is also that of %s; give each VF a request with its own mac",
					result.Request, mac, other)
			}
			addresses[mac] = device.VF
		}
		record.Devices = append(record.Devices, *device)
	}
	return record, nil
}

// resolveDevice checks one allocated VF, and returns it with its settings.
func (d *Driver) resolveDevice(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult,
	snapshot *inventory.Snapshot, progress progress) (*claims.Device, error) {
	if result.Pool != d.node {
		return nil, fmt.Errorf("VF %s is of node %s, and this is node %s", result.Device, result.Pool, d.node)
	}
	if result.AdminAccess != nil && *result.AdminAccess {
		return nil, fmt.Errorf("VF %s admits one client, so adminAccess is not supported; leave it out", result.Device)
	}
	vf, found := snapshot.Find(result.Device)
	if !found || !d.owns(vf.Port) {
		return nil, fmt.Errorf("the host offers no VF %s for claims any more: softiov vf list", result.Device)
	}
	if progress == unprepared && !vf.Healthy() {
		return nil, errors.New(vf.Reason)
	}
	wanted, err := d.rules.settings(claim.Status.Allocation.Devices.Config, result.Request)
	if err != nil {
		return nil, err
	}
	if err := policy.CheckVF(vf.VF, wanted); err != nil {
		return nil, err
	}
	device := vf.Device()
	if set, present := wanted["mac"]; present {
		// The policy's parser has encoded it.
		_ = json.Unmarshal(set, &device.MAC)
	}
	device.Pool, device.Requests = result.Pool, []string{result.Request}
	device.Settings, device.Wanted = claimed(vf.VF, wanted, progress), wanted
	return device, nil
}

// claimed returns the settings that end with the claim. Those that the administrator has set to the wanted value outlive
// it. If the claim was prepared before, commands that set a wanted value were the agent's.
func claimed(vf host.VF, wanted host.Settings, progress progress) host.Settings {
	settings := host.Settings{}
	for name, value := range wanted {
		origin, set := vf.Origins[name]
		if !set || origin == "default" || progress == prepared && origin == "kept" {
			settings[name] = value
		}
	}
	return settings
}

// salvage returns the record of a claim that would be refused now, because the administrator has changed a setting or a port
// since: those of its VFs that the host still has, with those of its settings that are still in force. Without a record
// the agent would not give them back, and they would refuse all later claims.
func (d *Driver) salvage(claim *resourceapi.ResourceClaim, snapshot *inventory.Snapshot) *claims.Record {
	record := newRecord(claim)
	for _, result := range claim.Status.Allocation.Devices.Results {
		vf, found := snapshot.Find(result.Device)
		if !found || !d.isMine(&result) {
			continue
		}
		// Parameters that are refused now set nothing.
		wanted, _ := d.rules.settings(claim.Status.Allocation.Devices.Config, result.Request)
		device := vf.Device()
		device.Pool, device.Requests, device.Settings = result.Pool, []string{result.Request}, host.Settings{}
		for name, value := range wanted {
			if vf.Origins[name] == "kept" && policy.Same(vf.Settings[name], value) {
				device.Settings[name] = value
			}
		}
		record.Devices = append(record.Devices, *device)
	}
	return record
}

// isInForce reports whether the VF shows that a claim was prepared: a VMM is connected, or a command has set all of the
// claim's settings.
func isInForce(vf *inventory.VF, settings host.Settings) bool {
	if vf.Peer != nil {
		return true
	}
	for name, value := range settings {
		if vf.Origins[name] != "kept" || !policy.Same(vf.Settings[name], value) {
			return false
		}
	}
	return len(settings) > 0
}

// claimRules applies the rules of policies to configurations of claims.
type claimRules struct{ policy.Rules }

// settings returns the settings of one request, from all configurations that apply to it.
func (r claimRules) settings(configs []resourceapi.DeviceAllocationConfiguration, request string) (host.Settings, error) {
	var matching []policy.Config
	for _, config := range configs {
		if config.Opaque == nil || config.Opaque.Driver != DriverName || !applies(config.Requests, request) {
			continue
		}
		settings, err := policy.Parse(config.Opaque.Parameters.Raw)
		if err != nil {
			return nil, err
		}
		source := policy.Claim
		if config.Source == resourceapi.AllocationConfigSourceClass {
			source = policy.Class
		}
		matching = append(matching, policy.Config{Source: source, Settings: settings})
	}
	return r.Merge(matching)
}

// applies reports whether a configuration for some requests (none: for all) is for this one. A request with
// alternatives is called REQUEST/ALTERNATIVE; a configuration names either.
func applies(requests []string, request string) bool {
	parent, _, _ := strings.Cut(request, "/")
	return len(requests) == 0 || slices.Contains(requests, request) || slices.Contains(requests, parent)
}
