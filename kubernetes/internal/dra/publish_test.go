package dra

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// countingPublisher counts what a driver publishes.
type countingPublisher struct{ calls, devices atomic.Int32 }

func (p *countingPublisher) PublishResources(_ context.Context, resources resourceslice.DriverResources) error {
	p.calls.Add(1)
	p.devices.Store(int32(len(resources.Pools["node-1"].Slices[0].Devices)))
	return nil
}

func TestRepeatedDeletionsCauseOneWriteASecond(t *testing.T) {
	b := newBench(t, []string{"pf0vf0", "pf0vf1"})
	b.watcher.Refresh(t.Context())
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		publisher, deletions := &countingPublisher{}, make(chan struct{}, 1)
		go func() { _ = b.publish(ctx, publisher, deletions) }()
		after := func(pause time.Duration) {
			time.Sleep(pause)
			synctest.Wait()
		}
		after(0)
		if publisher.calls.Load() != 1 {
			t.Fatalf("published %d times at the start", publisher.calls.Load())
		}
		deletions <- struct{}{}
		after(republishDelay - time.Millisecond)
		if publisher.calls.Load() != 1 {
			t.Error("published before the publisher knows the deletion")
		}
		after(2 * time.Millisecond)
		if publisher.calls.Load() != 2 || publisher.devices.Load() != 2 {
			t.Errorf("published %d times, %d devices", publisher.calls.Load(), publisher.devices.Load())
		}
		// Nothing is written without a deletion.
		after(time.Hour)
		if publisher.calls.Load() != 2 {
			t.Errorf("published %d times", publisher.calls.Load())
		}
		for range 1000 {
			deletions <- struct{}{}
			after(10 * time.Millisecond)
		}
		if most := 2 + int32(1000*10*time.Millisecond/republishDelay); publisher.calls.Load() > most || publisher.calls.Load() < most-1 {
			t.Errorf("published %d times in ten seconds of deletions", publisher.calls.Load()-2)
		}
	})
}
