// Package features writes labels of the node for Node Feature Discovery (NFD): a file in the folder of its local source.
package features

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/files"
	"softiov.io/kubernetes/internal/inventory"
)

const (
	// Folder is where NFD looks for files of features.
	Folder = "/etc/kubernetes/node-feature-discovery/features.d"
	// fileName is the agent's file in the folder. NFD ignores names that begin with a dot.
	fileName = "softiov"
	// domain begins the names of labels.
	domain = "vf.softiov.io/"
	// lifetime is the time after which NFD drops the labels of an agent that was killed.
	lifetime = 10 * time.Minute
	// defaultRenewal is the time after which the file is written again.
	defaultRenewal = lifetime / 3
)

// Writer keeps the file like the host's VFs.
type Writer struct {
	Folder  string
	Watcher *inventory.Watcher
	// Version is the version of the agent.
	Version string
	// renewal is the time after which the file is written again; 0 is the default. Tests set it.
	renewal time.Duration
}

// Run writes the file after each change, and removes it at the end of the context. A file that cannot be written is tried again.
func (w *Writer) Run(ctx context.Context) error {
	if err := os.MkdirAll(w.Folder, 0o755); err != nil {
		return fmt.Errorf("create the folder of features: %w", err)
	}
	renewal := cmp.Or(w.renewal, defaultRenewal)
	changes := w.Watcher.Subscribe()
	defer w.Watcher.Unsubscribe(changes)
	defer w.remove(ctx)
	var last map[string]string
	// Changes of the host's VFs must not put off the renewal: without it NFD drops the labels.
	written := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		case <-time.After(time.Until(written.Add(renewal))):
		}
		snapshot := w.Watcher.Snapshot()
		// Until host and holders of VFs are known, the labels of the agent before this one stay.
		if !snapshot.Complete() {
			written = time.Now()
			continue
		}
		next := Labels(&snapshot, w.Version)
		if time.Since(written) < renewal && maps.Equal(last, next) {
			continue
		}
		written = time.Now()
		if err := w.write(next, written.Add(lifetime)); err != nil {
			// VFs do not depend on labels. The next renewal tries again.
			klog.FromContext(ctx).Error(err, "The node's labels are not renewed")
			last = nil
			continue
		}
		last = next
	}
}

// path returns the path of the file.
func (w *Writer) path() string { return filepath.Join(w.Folder, fileName) }

// write replaces the file. Without labels there is none.
func (w *Writer) write(labels map[string]string, expiry time.Time) error {
	if len(labels) == 0 {
		if err := os.Remove(w.path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the file of features: %w", err)
		}
		return nil
	}
	// NFD may run as another user.
	if err := files.Write(w.path(), []byte(format(labels, expiry)), 0o644); err != nil {
		return fmt.Errorf("write the file of features: %w", err)
	}
	return nil
}

// remove removes the file at the agent's end.
func (w *Writer) remove(ctx context.Context) {
	if err := w.write(nil, time.Time{}); err != nil {
		klog.FromContext(ctx).Error(err, "Could not remove the node's labels; they expire", "after", lifetime)
	}
}

// format returns the content of the file: an expiry time, and lines NAME=VALUE.
func format(labels map[string]string, expiry time.Time) string {
	lines := []string{"# +expiry-time=" + expiry.UTC().Format(time.RFC3339)}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		lines = append(lines, domain+name+"="+labels[name])
	}
	return strings.Join(lines, "\n") + "\n"
}

// forbidden are characters that a label may not have.
var forbidden = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// Labels returns the labels of the node, without their domain: the number of VFs that take new pods, by family and port,
// and the version. A node without such VFs has none.
func Labels(snapshot *inventory.Snapshot, version string) map[string]string {
	counts := map[string]int{}
	for i := range snapshot.VFs {
		vf := &snapshot.VFs[i]
		if !vf.Offered() {
			continue
		}
		counts["vfs"]++
		counts["family-"+vf.Family]++
		counts["port-"+vf.Port]++
	}
	labels := map[string]string{}
	for name, count := range counts {
		labels[fit(name)] = strconv.Itoa(count)
	}
	if len(labels) > 0 && version != "" {
		labels["version"] = fit(version)
	}
	return labels
}

// fit returns a text that can be a label's name or value: at most 63 characters, with letters or digits at both ends.
func fit(text string) string {
	text = forbidden.ReplaceAllString(text, "_")
	return strings.Trim(text[:min(len(text), 63)], "_.-")
}
