// Package dra is the driver of VFs for dynamic resource allocation: it publishes VFs, and prepares claims.
package dra

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/cdifiles"
	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/inventory"
	"softiov.io/kubernetes/internal/policy"
)

// DriverName is the name of the driver in claims, device classes and ResourceSlices.
const DriverName = "vf.softiov.io"

// Driver prepares claims of one node.
type Driver struct {
	node    string
	host    *host.Client
	watcher *inventory.Watcher
	store   *claims.Store
	files   *cdifiles.Files
	rules   claimRules
	kube    kubernetes.Interface
	// owns reports whether the driver, and not the device plugin, has a port's VFs.
	owns func(port string) bool
	// stop ends the agent after an error that it cannot mend.
	stop func(error)

	// mutex serializes all that changes records, files of claims and the policy of VFs.
	mutex sync.Mutex
}

// Config is what a driver needs.
type Config struct {
	Node    string
	Host    *host.Client
	Watcher *inventory.Watcher
	Store   *claims.Store
	Files   *cdifiles.Files
	Rules   policy.Rules
	Kube    kubernetes.Interface
	Owns    func(port string) bool
	Stop    func(error)
}

// New returns a driver that does nothing yet.
func New(config Config) *Driver {
	return &Driver{
		node: config.Node, host: config.Host, watcher: config.Watcher, store: config.Store, files: config.Files,
		rules: claimRules{config.Rules}, kube: config.Kube, owns: config.Owns, stop: config.Stop,
	}
}

var _ kubeletplugin.DRAPlugin = (*Driver)(nil)

// PrepareResourceClaims prepares claims for pods that kubelet is about to start. Kubelet repeats it after a restart.
func (d *Driver) PrepareResourceClaims(ctx context.Context, all []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	refresh := sync.OnceValue(func() error { return d.watcher.RefreshHolders(ctx) })
	// Kubelet may take long for its report, and other calls need the mutex. Each claim that needs the report has its error.
	if slices.ContainsFunc(all, d.needsHolders) {
		_ = refresh()
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	// Kubelet may have given up while this call waited, and unprepared the claims. It would not do so again.
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("kubelet does not wait any more: %w", err)
	}
	if err := d.deriveOnce(ctx); err != nil {
		return nil, err
	}
	results := map[types.UID]kubeletplugin.PrepareResult{}
	var away error
	for _, claim := range all {
		record, err := (*claims.Record)(nil), away
		if away == nil {
			record, err = d.prepare(ctx, claim, refresh)
		}
		// The other claims need the host too. Each would wait for it as long.
		if host.IsUnreachable(err) {
			away = err
		}
		if err != nil {
			results[claim.UID] = kubeletplugin.PrepareResult{Err: fmt.Errorf("claim %s/%s: %w", claim.Namespace, claim.Name, err)}
			continue
		}
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: d.devices(record)}
	}
	return results, nil
}

// needsHolders reports whether kubelet must report which VFs pods have before a claim is prepared. A claim that is prepared
// keeps its VFs.
func (d *Driver) needsHolders(claim *resourceapi.ResourceClaim) bool {
	record, err := d.store.Get(string(claim.UID))
	return err == nil && (record == nil || record.Released || record.Derived || !d.isFor(record, claim))
}

// prepare gives the VFs of a claim their policy, and writes the claim's CDI file. The record is written first, so a
// crash at any point leaves nothing that a repetition, or unprepare, does not find.
func (d *Driver) prepare(ctx context.Context, claim *resourceapi.ResourceClaim, refresh func() error) (*claims.Record, error) {
	record, err := d.store.Get(string(claim.UID))
	if err != nil {
		return nil, err
	}
	if record != nil && record.Released {
		if err := d.settle(ctx, record); err != nil {
			return nil, err
		}
		record = nil
	}
	if record != nil && !d.isFor(record, claim) {
		klog.FromContext(ctx).Info("A claim was allocated again; its earlier VFs are taken back", "claim", record.Title())
		if err := d.release(ctx, record.UID); err != nil {
			return nil, err
		}
		record = nil
	}
	switch {
	case record == nil:
		if record, err = d.admit(ctx, claim, refresh); err != nil {
			return nil, err
		}
	case record.Derived:
		snapshot, err := d.askHolders(ctx, refresh)
		if err != nil {
			return nil, err
		}
		if record, err = d.resolve(claim, &snapshot, prepared); err != nil {
			return nil, err
		}
		// The record may be from a time when the device plugin had the port.
		if err := refuseHeld(record, &snapshot); err != nil {
			return nil, err
		}
		if err := d.store.Put(record); err != nil {
			return nil, err
		}
	}
	return record, d.enforce(ctx, record)
}

// isFor reports whether a record is that of a claim's present allocation. Kubelet does not release an earlier one if it has
// lost its own state.
func (d *Driver) isFor(record *claims.Record, claim *resourceapi.ResourceClaim) bool {
	allocated := map[string]string{}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if d.isMine(&result) {
			allocated[result.Device] = result.Request
		}
	}
	for _, device := range record.Devices {
		request, found := allocated[device.VF]
		if !found || !slices.Contains(device.Requests, request) {
			return false
		}
		wanted, err := d.rules.settings(claim.Status.Allocation.Devices.Config, request)
		// A claim whose parameters are refused since then stays as it is.
		if err == nil && device.Wanted != nil && !maps.EqualFunc(device.Wanted, wanted, isSame) {
			return false
		}
	}
	// A rebuilt record lacks VFs that the host did not have.
	return record.Derived || len(allocated) == len(record.Devices)
}

func isSame(one, other json.RawMessage) bool { return policy.Same(one, other) }

// admit checks a new claim against the other claims and the host as it is now, and writes its record.
func (d *Driver) admit(ctx context.Context, claim *resourceapi.ResourceClaim, refresh func() error) (*claims.Record, error) {
	records, err := d.store.All()
	if err != nil {
		return nil, err
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if !d.isMine(&result) {
			continue
		}
		if holder := claims.Holder(records, result.Device, string(claim.UID)); holder != nil {
			if err := d.evict(ctx, holder, result.Device); err != nil {
				return nil, err
			}
		}
	}
	snapshot, err := d.askHolders(ctx, refresh)
	if err != nil {
		return nil, err
	}
	record, err := d.resolve(claim, &snapshot, unprepared)
	if err != nil {
		return nil, err
	}
	if err := refuseHeld(record, &snapshot); err != nil {
		return nil, err
	}
	for _, device := range record.Devices {
		vf, _ := snapshot.Find(device.VF)
		if vf.Peer != nil {
			return nil, fmt.Errorf("VF %s is in use by %s, which no claim accounts for; end it, or: softiov vf disconnect %s",
				device.VF, vf.Peer, device.VF)
		}
	}
	return record, d.store.Put(record)
}

// refuseHeld returns an error if a pod has a VF of a record by the device plugin.
func refuseHeld(record *claims.Record, snapshot *inventory.Snapshot) error {
	for _, device := range record.Devices {
		vf, _ := snapshot.Find(device.VF)
		if vf.Held != "" {
			return errors.New(vf.Held)
		}
	}
	return nil
}

// askHolders returns the VFs as the host has them now, with the pods that kubelet reports to refresh.
func (d *Driver) askHolders(ctx context.Context, refresh func() error) (inventory.Snapshot, error) {
	if err := refresh(); err != nil {
		return inventory.Snapshot{}, fmt.Errorf("a pod may have the VF by the device plugin: %w", err)
	}
	return d.ask(ctx)
}

// ask returns the host's VFs as they are now. An earlier answer may show settings of a claim that has ended since, and the
// next claim would count them as the administrator's and not set them.
func (d *Driver) ask(ctx context.Context) (inventory.Snapshot, error) {
	snapshot, err := d.watcher.Refresh(ctx)
	if err != nil {
		return snapshot, fmt.Errorf("the policy of VFs cannot be checked: %w; kubelet tries again", err)
	}
	return snapshot, nil
}

// evict settles a released claim that still holds a VF. A claim that has not ended keeps its VF: its containers may
// still run, even if the claim itself was deleted by force.
func (d *Driver) evict(ctx context.Context, holder *claims.Record, vf string) error {
	if !holder.Released {
		return fmt.Errorf("VF %s is still prepared for claim %s (%s); kubelet releases it when that claim's pod has ended. "+
			"If no such pod is left: softiov-node release %s", vf, holder.Title(), holder.UID, holder.UID)
	}
	if err := d.settle(ctx, holder); err != nil {
		return fmt.Errorf("VF %s is not free: %w", vf, &pendingError{holder.Title(), err})
	}
	return nil
}

// enforce sets those settings of a claim that are not in force, and writes the claim's CDI file.
func (d *Driver) enforce(ctx context.Context, record *claims.Record) error {
	changed := false
	for i := range record.Devices {
		device := &record.Devices[i]
		if len(device.Settings)+len(device.Wanted) == 0 {
			continue
		}
		vf, err := d.host.VF(ctx, device.VF)
		if err != nil {
			return fmt.Errorf("VF %s: %w", device.VF, err)
		}
		lost := policy.Lost(vf, device.Settings)
		if unset := policy.Unset(vf, device.Wanted); len(unset) > 0 {
			if err := d.own(record, device, unset); err != nil {
				return err
			}
			maps.Copy(lost, unset)
		}
		if len(lost) == 0 {
			continue
		}
		if err := d.host.ChangeVF(ctx, device.VF, host.Change{Set: lost}); err != nil {
			return fmt.Errorf("VF %s: %w", device.VF, err)
		}
		klog.FromContext(ctx).Info("Set the policy of a claim", "claim", record.Title(), "vf", device.VF, "settings", lost)
		changed = true
	}
	if changed {
		// A host that loses the policy differs from this snapshot, which starts a repair. Without an answer, the interval does.
		_, _ = d.watcher.Refresh(ctx)
	}
	return d.files.Write(record)
}

// own adds settings to those that end with a claim, before the host has them.
func (d *Driver) own(record *claims.Record, device *claims.Device, settings host.Settings) error {
	before := len(device.Settings)
	if device.Settings == nil {
		device.Settings = host.Settings{}
	}
	maps.Copy(device.Settings, settings)
	if len(device.Settings) == before {
		return nil
	}
	return d.store.Put(record)
}

// devices returns the VFs of a record as kubelet wants them.
func (d *Driver) devices(record *claims.Record) []kubeletplugin.Device {
	snapshot := d.watcher.Snapshot()
	var all []kubeletplugin.Device
	for _, device := range record.Devices {
		all = append(all, kubeletplugin.Device{
			Requests: device.Requests, PoolName: device.Pool, DeviceName: device.VF,
			CDIDeviceIDs: []string{cdifiles.DeviceID(record.UID, device.VF)}, Metadata: metadata(record, &device, &snapshot),
		})
	}
	return all
}

// HandleError logs an error of the background, and ends the agent if a repetition cannot mend it.
func (d *Driver) HandleError(ctx context.Context, err error, message string) {
	utilruntime.HandleErrorWithContext(ctx, err, message)
	if !errors.Is(err, kubeletplugin.ErrRecoverable) {
		d.stop(fmt.Errorf("%s: %w", message, err))
	}
}
