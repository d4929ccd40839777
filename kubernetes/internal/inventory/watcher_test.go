package inventory

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/sockettest"
)

// watch returns a watcher of a host that answers while the value is true.
func watch(t *testing.T, drained ...string) (*Watcher, *atomic.Bool) {
	t.Helper()
	answers := &atomic.Bool{}
	client := host.NewClient(sockettest.Serve(t, func(answer http.ResponseWriter, _ *http.Request) {
		if !answers.Load() {
			answer.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(answer, `[{"name":"pf0","vfs":[{"name":"pf0vf0","socket":"/a/vf.sock"},{"name":"pf0vf1","socket":"/b/vf.sock"}]}]`)
	}))
	return NewWatcher(client, time.Hour, func() []string { return drained }), answers
}

// refresh asks the host, which answers.
func refresh(t *testing.T, watcher *Watcher) Snapshot {
	t.Helper()
	snapshot, err := watcher.Refresh(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

func TestShortOutageOfTheHostIsNoneForVFs(t *testing.T) {
	watcher, answers := watch(t)
	ctx := context.Background()
	if _, err := watcher.ask(ctx, true); err == nil || watcher.Snapshot().Answered {
		t.Errorf("the host has answered before it did: %v", err)
	}
	answers.Store(true)
	if snapshot, err := watcher.ask(ctx, true); err != nil || len(snapshot.VFs) != 2 {
		t.Errorf("the answer: %+v, %v", snapshot, err)
	}
	answers.Store(false)
	for failure := 1; failure <= patience; failure++ {
		if _, err := watcher.ask(ctx, true); err == nil {
			t.Error("no error without an answer")
		}
		snapshot := watcher.Snapshot()
		if want := failure < patience; len(snapshot.VFs) != 2 || snapshot.VFs[0].Healthy() != want || (snapshot.Unreachable == "") != want {
			t.Errorf("after %d failures: %+v", failure, snapshot)
		}
	}
	answers.Store(true)
	if snapshot, err := watcher.Refresh(ctx); err != nil || !snapshot.VFs[0].Healthy() || watcher.Snapshot().Unreachable != "" {
		t.Errorf("after the outage: %+v, %v", snapshot, err)
	}
}

// Pods that start while the host starts again must not make all VFs of the node unhealthy.
func TestFailuresOfOtherCallersMakeNoOutage(t *testing.T) {
	watcher, answers := watch(t)
	answers.Store(true)
	ctx := context.Background()
	if _, err := watcher.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	answers.Store(false)
	for range 2 * patience {
		if _, err := watcher.Refresh(ctx); err == nil {
			t.Error("no error without an answer")
		}
	}
	if snapshot := watcher.Snapshot(); snapshot.Unreachable != "" || !snapshot.VFs[0].Healthy() {
		t.Errorf("an outage: %+v", snapshot)
	}
	for range patience {
		_, _ = watcher.ask(ctx, true)
	}
	if watcher.Snapshot().Unreachable == "" {
		t.Error("no outage after failures of Run")
	}
}

func TestLateAnswerDoesNotReplaceANewerOne(t *testing.T) {
	var requests atomic.Int32
	arrived, hold := make(chan struct{}), make(chan struct{})
	client := host.NewClient(sockettest.Serve(t, func(answer http.ResponseWriter, _ *http.Request) {
		name := "new"
		if requests.Add(1) == 1 {
			name = "old"
			close(arrived)
			<-hold
		}
		fmt.Fprintf(answer, `[{"name":"pf0","vfs":[{"name":%q}]}]`, name)
	}))
	watcher := NewWatcher(client, time.Hour, func() []string { return nil })
	late := make(chan Snapshot)
	go func() {
		snapshot, err := watcher.Refresh(context.Background())
		if err != nil {
			t.Error(err)
		}
		late <- snapshot
	}()
	<-arrived
	if snapshot, err := watcher.Refresh(context.Background()); err != nil || snapshot.VFs[0].Name != "new" {
		t.Errorf("%+v, %v", snapshot, err)
	}
	close(hold)
	if snapshot := <-late; snapshot.VFs[0].Name != "old" {
		t.Errorf("a caller does not get its own answer: %+v", snapshot)
	}
	if snapshot := watcher.Snapshot(); snapshot.VFs[0].Name != "new" {
		t.Errorf("the late answer is the snapshot: %+v", snapshot)
	}
}

func TestSubscriberIsNotifiedOfChangesOnly(t *testing.T) {
	watcher, answers := watch(t)
	answers.Store(true)
	changes := watcher.Subscribe()
	pending := func() bool {
		select {
		case <-changes:
			return true
		default:
			return false
		}
	}
	if !pending() {
		t.Error("no notification of the present state")
	}
	refresh(t, watcher)
	if !pending() {
		t.Error("no notification of the first answer")
	}
	refresh(t, watcher)
	if pending() {
		t.Error("a notification without a change")
	}
	watcher.Unsubscribe(changes)
	if len(watcher.subscribers) != 0 {
		t.Error("the subscriber is still there")
	}
}

func TestDrainNamesAPortOrAVF(t *testing.T) {
	for drained, want := range map[string][2]bool{"pf0": {true, true}, "pf0vf1": {false, true}, "pf1": {false, false}} {
		watcher, answers := watch(t, drained)
		answers.Store(true)
		snapshot := refresh(t, watcher)
		if got := [2]bool{snapshot.VFs[0].Drained, snapshot.VFs[1].Drained}; got != want {
			t.Errorf("drain of %s: %v, want %v", drained, got, want)
		}
		if !snapshot.VFs[0].Healthy() || snapshot.VFs[1].Offered() == want[1] {
			t.Errorf("drain of %s: %+v", drained, snapshot.VFs)
		}
	}
}
