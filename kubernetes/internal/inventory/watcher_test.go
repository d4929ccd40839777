package inventory

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"softiov.io/kubernetes/internal/host"
)

// watch returns a watcher of a host that answers while the value is true.
func watch(t *testing.T, drained ...string) (*Watcher, *atomic.Bool) {
	t.Helper()
	folder, err := os.MkdirTemp("", "sn")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	listener, err := net.Listen("unix", filepath.Join(folder, "c.sock"))
	if err != nil {
		t.Fatal(err)
	}
	answers := &atomic.Bool{}
	server := &http.Server{Handler: http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		if !answers.Load() {
			answer.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(answer, `[{"name":"pf0","vfs":[{"name":"pf0vf0","socket":"/a/vf.sock"},{"name":"pf0vf1","socket":"/b/vf.sock"}]}]`)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	client := host.NewClient(filepath.Join(folder, "c.sock"))
	return NewWatcher(client, time.Hour, func() []string { return drained }), answers
}

func TestShortOutageOfTheHostIsNoneForVFs(t *testing.T) {
	watcher, answers := watch(t)
	ctx := context.Background()
	watcher.Refresh(ctx)
	if watcher.Snapshot().Answered {
		t.Error("the host has answered before it did")
	}
	answers.Store(true)
	watcher.Refresh(ctx)
	answers.Store(false)
	for failure := 1; failure <= patience; failure++ {
		watcher.Refresh(ctx)
		snapshot := watcher.Snapshot()
		if want := failure < patience; len(snapshot.VFs) != 2 || snapshot.VFs[0].Healthy() != want || (snapshot.Unreachable == "") != want {
			t.Errorf("after %d failures: %+v", failure, snapshot)
		}
	}
	answers.Store(true)
	watcher.Refresh(ctx)
	if snapshot := watcher.Snapshot(); !snapshot.VFs[0].Healthy() || snapshot.Unreachable != "" {
		t.Errorf("after the outage: %+v", snapshot)
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
	watcher.Refresh(context.Background())
	if !pending() {
		t.Error("no notification of the first answer")
	}
	watcher.Refresh(context.Background())
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
		watcher.Refresh(context.Background())
		snapshot := watcher.Snapshot()
		if got := [2]bool{snapshot.VFs[0].Drained, snapshot.VFs[1].Drained}; got != want {
			t.Errorf("drain of %s: %v, want %v", drained, got, want)
		}
		if !snapshot.VFs[0].Healthy() || snapshot.VFs[1].Offered() == want[1] {
			t.Errorf("drain of %s: %+v", drained, snapshot.VFs)
		}
	}
}
