package dra

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/policy"
)

// UnprepareResourceClaims releases claims whose last pod of this node has ended. The claims themselves may be gone.
func (d *Driver) UnprepareResourceClaims(ctx context.Context, all []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	// A host that does not answer is asked once. Each VF of each claim would wait as long.
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	results := map[types.UID]error{}
	for _, claim := range all {
		err := d.release(ctx, string(claim.UID))
		if host.IsUnreachable(err) {
			giveUp()
		}
		results[claim.UID] = unpreparedError(ctx, claim, err)
	}
	return results, nil
}

// unpreparedError returns kubelet's error for a claim whose release had an error. There is none if only the host's part is
// left: a pod must be able to end without the host, and in spite of a refusal, whose cause may be another pod's VF.
func unpreparedError(ctx context.Context, claim kubeletplugin.NamespacedObject, err error) error {
	var pending *pendingError
	if errors.As(err, &pending) {
		klog.FromContext(ctx).Error(err, "A claim has ended, and its VFs are free later", "claim", claim.String())
		return nil
	}
	if err != nil {
		return fmt.Errorf("claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// pendingError is the reason why the host has not taken back the settings of a claim whose release is on the disk.
type pendingError struct {
	title string
	err   error
}

func (e *pendingError) Error() string {
	return fmt.Sprintf("claim %s has ended, but the host has not taken back its settings: %v; the agent tries again every %v",
		e.title, e.err, repairInterval)
}

func (e *pendingError) Unwrap() error { return e.err }

// Release releases a claim that kubelet has forgotten, by its UID. The administrator sees what the host refuses.
func (d *Driver) Release(ctx context.Context, uid string) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.release(ctx, uid)
}

// release takes a claim's VFs back. It returns a *pendingError if only the host's part is left: that follows, and until then
// no other claim gets the VFs.
func (d *Driver) release(ctx context.Context, uid string) error {
	record, err := d.store.Get(uid)
	if err != nil {
		return err
	}
	if err := d.files.Remove(uid); err != nil {
		return err
	}
	if record == nil {
		return nil
	}
	noted := d.note(record)
	switch err := d.settle(ctx, record); {
	case err == nil:
		return nil
	case noted != nil:
		return errors.Join(noted, err)
	default:
		return &pendingError{record.Title(), err}
	}
}

// note writes to the disk that a claim has ended. A full disk is no reason to stop there: the end of the claim frees space.
func (d *Driver) note(record *claims.Record) error {
	if record.Released {
		return nil
	}
	record.Released = true
	return d.store.Put(record)
}

// settle has the host take back the settings of a released claim, and removes the record.
func (d *Driver) settle(ctx context.Context, record *claims.Record) error {
	var faults []error
	for _, device := range record.Devices {
		err := d.takeBack(ctx, &device)
		if err != nil {
			faults = append(faults, fmt.Errorf("VF %s: %w", device.VF, err))
		}
		if host.IsUnreachable(err) {
			break
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Released a claim", "claim", record.Title())
	return d.store.Delete(record.UID)
}

// takeBack disconnects a VMM that outlived its pod, and gives the claim's settings back to the host's own.
func (d *Driver) takeBack(ctx context.Context, device *claims.Device) error {
	vf, err := d.host.VF(ctx, device.VF)
	if host.IsNoSuchName(err) {
		return nil // The port has fewer VFs now.
	}
	if err != nil {
		return err
	}
	if vf.Peer != nil {
		klog.FromContext(ctx).Info("Disconnecting a VMM that outlived its pod", "vf", device.VF, "client", vf.Peer.String())
		if err := d.host.Disconnect(ctx, device.VF); err != nil && !host.IsNoSuchName(err) {
			return err
		}
	}
	change := policy.GiveBack(vf, device.Settings)
	if len(change.Default) == 0 {
		return nil
	}
	return d.host.ChangeVF(ctx, device.VF, change)
}
