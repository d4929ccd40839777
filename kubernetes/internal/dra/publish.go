package dra

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	informers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"
)

// republishDelay is the time from the first deletion of a slice until all are published again. By then the publisher has seen
// the deletion too; otherwise it would find nothing to write. It also bounds how often slices are written that are deleted
// again and again.
const republishDelay = time.Second

// Publisher writes the ResourceSlices of the node.
type Publisher interface {
	PublishResources(ctx context.Context, resources resourceslice.DriverResources) error
}

// Publish keeps the node's ResourceSlices like the host's VFs, until the context ends. Kubelet deletes them when it starts, and
// the publisher alone would write them again half a minute later: until then the scheduler knows no VF of the node.
func (d *Driver) Publish(ctx context.Context, publisher Publisher) {
	informer, deletions, err := d.watchDeletions()
	if err != nil {
		d.stop(err)
		return
	}
	var watch sync.WaitGroup
	defer watch.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch.Go(func() { informer.RunWithContext(ctx) })
	if err := d.publish(ctx, publisher, deletions); err != nil {
		d.stop(err)
	}
}

// watchDeletions returns an informer of the driver's slices on this node, and a channel that receives a value after slices were
// deleted.
func (d *Driver) watchDeletions() (cache.SharedIndexInformer, <-chan struct{}, error) {
	informer := informers.NewFilteredResourceSliceInformer(d.kube, 0, nil, func(options *metav1.ListOptions) {
		options.FieldSelector = fmt.Sprintf("spec.driver=%s,spec.nodeName=%s", DriverName, d.node)
	})
	deletions := make(chan struct{}, 1)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) {
		select {
		case deletions <- struct{}{}:
		default: // A notification is pending already.
		}
	}})
	if err != nil {
		return nil, nil, fmt.Errorf("watch the node's ResourceSlices: %w", err)
	}
	return informer, deletions, nil
}

// publish writes the slices after each change of the host's VFs, and after a deletion.
func (d *Driver) publish(ctx context.Context, publisher Publisher, deletions <-chan struct{}) error {
	changes := d.watcher.Subscribe()
	defer d.watcher.Unsubscribe(changes)
	var last resourceslice.DriverResources
	// due is set from the first deletion until the slices are published.
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-deletions:
			if due == nil {
				due = time.After(republishDelay)
			}
			continue
		case <-due:
			due = nil
			if last.Pools == nil {
				continue
			}
			klog.FromContext(ctx).Info("ResourceSlices were deleted; publishing them again")
		case <-changes:
			snapshot := d.watcher.Snapshot()
			// Until host and holders of VFs are known, slices of an agent before this one stay as they are.
			if !snapshot.Complete() {
				continue
			}
			next := d.Resources(klog.FromContext(ctx), &snapshot)
			if reflect.DeepEqual(last, next) {
				continue
			}
			last = next
		}
		if err := publisher.PublishResources(ctx, last); err != nil {
			return err
		}
	}
}
