package dra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/inventory"
)

const (
	// repairInterval is the time between two repairs if nothing changes.
	repairInterval = 10 * time.Second
	// listPage bounds the claims of one answer of the API server.
	listPage = 500
	// apiTimeout bounds one request to the API server.
	apiTimeout = 10 * time.Second
)

// errAPI marks failed requests to the API server.
var errAPI = errors.New("the API server has not answered")

// Run compares records, files and the host with each other until the context ends, and mends what a restart or a crash
// of agent, host or machine has lost.
func (d *Driver) Run(ctx context.Context) {
	changes := d.watcher.Subscribe()
	defer d.watcher.Unsubscribe(changes)
	for {
		if err := d.Repair(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Could not repair the state of claims; the next attempt follows")
		}
		select {
		case <-ctx.Done():
			return
		case <-changes:
		case <-time.After(repairInterval):
		}
	}
}

// Repair makes one comparison.
func (d *Driver) Repair(ctx context.Context) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if err := d.deriveOnce(ctx); err != nil {
		return err
	}
	records, err := d.store.All()
	if err != nil {
		return err
	}
	snapshot := d.watcher.Snapshot()
	uids := map[string]bool{}
	for _, record := range records {
		if !record.Released {
			uids[record.UID] = true
		}
	}
	if err := d.files.RemoveOthers(uids); err != nil {
		klog.FromContext(ctx).Error(err, "Could not remove CDI files of ended claims")
	}
	if !snapshot.Answered || snapshot.Unreachable != "" {
		return nil
	}
	// Rebuilt claims need the API server, for which the others must not wait.
	slices.SortStableFunc(records, func(one, other *claims.Record) int { return rank(one) - rank(other) })
	for _, record := range records {
		err := d.repair(ctx, record)
		if host.IsUnreachable(err) || errors.Is(err, errAPI) {
			// The other claims would wait as long, and kubelet's calls for them.
			return err
		}
		if err != nil {
			// One claim that cannot be mended must not keep the others from it.
			klog.FromContext(ctx).Error(err, "Could not repair a claim", "claim", record.Title())
		}
	}
	return nil
}

// rank orders records for a repair.
func rank(record *claims.Record) int {
	if record.Derived && !record.Released {
		return 1
	}
	return 0
}

// repair mends one claim.
func (d *Driver) repair(ctx context.Context, record *claims.Record) error {
	if record.Derived && !record.Released {
		gone, err := d.isGone(ctx, record)
		if err != nil {
			return err
		}
		record.Released = gone
	}
	if record.Released {
		return d.settle(ctx, record)
	}
	return d.enforce(ctx, record)
}

// deriveOnce rebuilds records that are missing, from the claims of the API: the agent's folder may have been lost. A
// complete folder needs no request, which would read the claims of the whole cluster.
func (d *Driver) deriveOnce(ctx context.Context) error {
	if d.store.IsComplete() {
		return nil
	}
	snapshot, err := d.ask(ctx)
	if err != nil {
		return err
	}
	options := metav1.ListOptions{Limit: listPage}
	for {
		page, err := d.list(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			// Without this record the folder is not complete.
			if err := d.derive(ctx, &page.Items[i], &snapshot); err != nil {
				return err
			}
		}
		if page.Continue == "" {
			return d.store.SetComplete()
		}
		options.Continue = page.Continue
	}
}

// list returns one page of the cluster's claims.
func (d *Driver) list(ctx context.Context, options metav1.ListOptions) (*resourceapi.ResourceClaimList, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	page, err := d.kube.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("%w: list the claims of the cluster: %w", errAPI, err)
	}
	return page, nil
}

// derive rebuilds the record of one claim, if it is for a pod on this node and has none. A claim that was not prepared
// yet gets none: kubelet will ask for it, or will never ask for its release. If its VF is of the device plugin since, it gets
// one, until no pod uses the claim.
func (d *Driver) derive(ctx context.Context, claim *resourceapi.ResourceClaim, snapshot *inventory.Snapshot) error {
	if len(claim.Status.ReservedFor) == 0 || !d.isHere(claim) {
		return nil
	}
	if record, err := d.store.Get(string(claim.UID)); err != nil || record != nil {
		return err
	}
	record, err := d.resolve(claim, snapshot, prepared)
	if err != nil {
		klog.FromContext(ctx).Error(err, "A claim would be refused now; it keeps what it has if it is in use", "claim", klog.KObj(claim))
		record = d.salvage(claim, snapshot)
	}
	inForce := slices.ContainsFunc(record.Devices, func(device claims.Device) bool {
		vf, _ := snapshot.Find(device.VF)
		// Kubelet would give a VF of a port that has left claims to another pod, whether or not the claim shows on the VF now.
		return !d.owns(vf.Port) || isInForce(&vf, device.Settings)
	})
	if !inForce {
		return nil
	}
	record.Derived = true
	klog.FromContext(ctx).Info("Rebuilt the record of a claim from the API", "claim", record.Title())
	return d.store.Put(record)
}

// isHere reports whether a claim has a VF of this node.
func (d *Driver) isHere(claim *resourceapi.ResourceClaim) bool {
	return claim.Status.Allocation != nil &&
		slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(result resourceapi.DeviceRequestAllocationResult) bool {
			return d.isMine(&result)
		})
}

// isMine reports whether an allocated device is a VF of this node.
func (d *Driver) isMine(result *resourceapi.DeviceRequestAllocationResult) bool {
	return result.Driver == DriverName && result.Pool == d.node
}

// isGone reports whether a rebuilt claim was never prepared and has ended: kubelet will not ask to release it then. A VF
// with a VMM is in use, whatever the API says.
func (d *Driver) isGone(ctx context.Context, record *claims.Record) (bool, error) {
	snapshot, err := d.ask(ctx)
	if err != nil {
		return false, err
	}
	for _, device := range record.Devices {
		if vf, _ := snapshot.Find(device.VF); vf.Peer != nil {
			return false, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	claim, err := d.kube.ResourceV1().ResourceClaims(record.Namespace).Get(ctx, record.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("%w: get the claim %s: %w", errAPI, record.Title(), err)
	}
	return string(claim.UID) != record.UID || len(claim.Status.ReservedFor) == 0 || !d.isHere(claim), nil
}
