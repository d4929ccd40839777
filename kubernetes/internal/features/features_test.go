package features

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/host/hosttest"
	"softiov.io/kubernetes/internal/inventory"
)

// vf returns a VF of a port.
func vf(name, port, family string) inventory.VF {
	return inventory.VF{VF: host.VF{Name: name}, Port: port, Family: family}
}

func TestLabelsCountVFsThatTakeNewPods(t *testing.T) {
	quarantined, drained := vf("pf0vf1", "pf0", "82576"), vf("pf0vf2", "pf0", "82576")
	held := vf("pf0vf3", "pf0", "82576")
	quarantined.Reason, drained.Drained, held.Held = "quarantined", true, "pod default/web has VF pf0vf3 as softiov.io/vf"
	long := strings.Repeat("p", 80)
	snapshot := &inventory.Snapshot{Answered: true, VFs: []inventory.VF{
		vf("pf0vf0", "pf0", "82576"), quarantined, drained, held, vf("pf1vf0", "pf1", "virtio"), vf("x", "a/b", "virtio"),
		vf("y", long, "virtio"),
	}}
	got := format(Labels(snapshot, "0.1.0+dirty"), time.Unix(0, 0))
	want := "# +expiry-time=1970-01-01T00:00:00Z\nvf.softiov.io/family-82576=1\nvf.softiov.io/family-virtio=3\nvf.softiov.io/port-a_b=1\n" +
		"vf.softiov.io/port-pf0=1\nvf.softiov.io/port-pf1=1\nvf.softiov.io/port-" + long[:58] + "=1\nvf.softiov.io/version=0.1.0_dirty\n" +
		"vf.softiov.io/vfs=4\n"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// The form of labels in Kubernetes' API.
	line := regexp.MustCompile(`^vf\.softiov\.io/[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?=[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)
	for _, text := range strings.Split(strings.TrimSpace(got), "\n")[1:] {
		if !line.MatchString(text) {
			t.Errorf("%s is not a label", text)
		}
	}
	if labels := Labels(&inventory.Snapshot{Answered: true, VFs: []inventory.VF{drained, held}}, "0.1.0"); len(labels) != 0 {
		t.Errorf("a node without a free VF has labels: %v", labels)
	}
}

// Without a renewal NFD drops the labels. Changes of VFs that change no label must not put it off.
func TestFileIsRenewedInSpiteOfChanges(t *testing.T) {
	var changes atomic.Int32
	client := hosttest.Start(t, func() []host.Port {
		port := hosttest.Port("pf0", "avf", "pf0vf0")
		port.VFs[0].MAC = fmt.Sprintf("02:00:00:00:00:%02x", changes.Add(1)%256)
		return []host.Port{port}
	})
	watcher := inventory.NewWatcher(client, time.Hour, func() []string { return nil })
	writer := &Writer{Folder: t.TempDir(), Watcher: watcher, Version: "0.1.0", renewal: time.Second}
	file := filepath.Join(writer.Folder, "softiov")
	// A file that cannot be written is tried again, and does not end the agent.
	if err := os.Mkdir(file, 0o755); err != nil {
		t.Fatal(err)
	}
	failed := make(chan struct{}, 1)
	log := funcr.New(func(_, entry string) {
		if strings.Contains(entry, "labels are not renewed") {
			select {
			case failed <- struct{}{}:
			default:
			}
		}
	}, funcr.Options{})
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), log))
	ended := make(chan error, 1)
	go func() { ended <- writer.Run(ctx) }()
	appears := func(what string) {
		t.Helper()
		for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			watcher.Refresh(ctx)
			if content, _ := os.ReadFile(file); len(content) > 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	watcher.Refresh(ctx)
	<-failed
	for range 2 {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		appears("the file is not written again")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestFileFollowsTheHostAndEndsWithTheAgent(t *testing.T) {
	var quarantine atomic.Bool
	client := hosttest.Start(t, func() []host.Port {
		port := hosttest.Port("pf0", "avf", "pf0vf0")
		if quarantine.Load() {
			reason := "spoofing"
			port.VFs[0].Conduct.Quarantine = &reason
		}
		return []host.Port{port}
	})
	watcher := inventory.NewWatcher(client, time.Hour, func() []string { return nil })
	writer := &Writer{Folder: filepath.Join(t.TempDir(), "features.d"), Watcher: watcher, Version: "0.1.0"}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- writer.Run(ctx) }()
	file := filepath.Join(writer.Folder, "softiov")
	follow := func(what string, holds func(content string) bool) {
		t.Helper()
		watcher.Refresh(ctx)
		for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			content, _ := os.ReadFile(file)
			if holds(string(content)) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %s", what, content)
			}
		}
	}
	follow("the VF has labels", func(content string) bool {
		return strings.Contains(content, "vf.softiov.io/family-avf=1\n") && strings.Contains(content, "vf.softiov.io/version=0.1.0\n")
	})
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
	quarantine.Store(true)
	follow("without a usable VF there is no file", func(content string) bool { return content == "" })
	quarantine.Store(false)
	follow("the VF is back", func(content string) bool { return strings.Contains(content, "vf.softiov.io/vfs=1\n") })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(writer.Folder); err != nil || len(entries) != 0 {
		t.Errorf("the agent left %v, %v", entries, err)
	}
}
