// Package hostprogram puts the host's program on the node, and replaces a running host by it.
//
// The keeper of a host starts each host from a file of the node, not of its own image. So an update of the image reaches the
// host without a new pod, which would end the connections of vfio-user clients.
package hostprogram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/files"
	"softiov.io/kubernetes/internal/host"
)

// Names in the node's folder.
const (
	// Name is the file name of the program from which the keeper starts hosts.
	Name = "softiov"
	// first is the file name of the copy that becomes the program of a folder without one.
	first = "softiov.first"
	// previous is the file name of the replaced program, until a host of the new one has taken over.
	previous = "softiov.previous"
	// pending is the file name of the mark of an update: it exists from before the program is replaced until a host of it has
	// taken over, or the replaced program is back.
	pending = "softiov.pending"
)

// Pauses between two attempts to have the host replaced: the first one, and the longest.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// errNotCompared is the initial status: the installed program was not compared yet.
var errNotCompared = errors.New("the host's program is not compared yet")

// Updater keeps the node's program equal to that of the image.
type Updater struct {
	// source is the image's program, and folder the node's folder for it.
	source, folder string
	host           *host.Client
	// perform does steps in their order until one fails. Tests end between any two, as a crash does.
	perform func([]step) error

	mutex sync.Mutex
	// fault is the last attempt's error.
	fault error
}

// NewUpdater returns an updater that copies a program into a folder, for the host behind a client.
func NewUpdater(source, folder string, host *host.Client) *Updater {
	return &Updater{source: source, folder: folder, host: host, fault: errNotCompared, perform: perform}
}

// InstallMissing copies the program into the node's folder, unless there is one: a pod of an older image must not bring back
// its program.
func InstallMissing(source, folder string) error {
	if exists(filepath.Join(folder, Name)) {
		return nil
	}
	if err := perform(firstInstall(source, folder)); err != nil {
		return fmt.Errorf("install the host's program: %w", err)
	}
	return nil
}

// firstInstall returns the steps that install a program in a folder without one. Agent and host's pod may do so at the same time,
// and a keeper may run what the first of them has installed: a link replaces nothing.
func firstInstall(source, folder string) []step {
	path, copied := filepath.Join(folder, Name), filepath.Join(folder, first)
	return []step{
		func() error { return os.MkdirAll(folder, 0o755) },
		func() error { return files.Copy(copied, source, 0o755) },
		func() error {
			if err := os.Link(copied, path); err != nil && !exists(path) {
				return err
			}
			return nil
		},
		func() error { return remove(copied) },
	}
}

// exists reports whether a path exists.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Run installs the image's program, and has the running host replaced by it. It tries again until that has succeeded, or the
// host has refused: each attempt lets guests wait.
func (u *Updater) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := u.update(ctx)
		u.report(err)
		switch {
		case err == nil:
			return
		case host.IsRefusal(err):
			logger.Error(err, "The host stays of the previous program, until the agent starts again")
			return
		case host.IsUnreachable(err):
			logger.V(2).Info("The host's program waits for the host", "reason", err)
		default:
			logger.Error(err, "Could not update the host's program", "nextAttemptIn", pause)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// Outdated returns why the host does not run the image's program, or nil.
func (u *Updater) Outdated() error {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.fault
}

func (u *Updater) report(fault error) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.fault = fault
}

// update makes one attempt.
func (u *Updater) update(ctx context.Context) error {
	if err := u.install(); err != nil {
		return fmt.Errorf("install the host's program: %w", err)
	}
	if !exists(u.path(pending)) {
		return nil
	}
	// A host that starts meanwhile has the new program already. Another hand-over does no harm: guests stay connected.
	err := u.host.Upgrade(ctx)
	if host.IsRefusal(err) {
		// If the host dies, the keeper must find a program that runs.
		return errors.Join(fmt.Errorf("replace the running host: %w", err), u.restore())
	}
	if err != nil {
		// The host may still hand over to the installed program, so that stays, with its mark.
		return fmt.Errorf("replace the running host: %w", err)
	}
	klog.FromContext(ctx).Info("Another host has taken over from the installed program", "program", u.path(Name))
	if err := u.forget(); err != nil {
		klog.FromContext(ctx).Error(err, "The next agent will have the host replaced once more")
	}
	return nil
}

// install replaces the node's program if the image's has other bytes. The mark is written first: if this process ends in
// between, the next one knows that the host may be of the old program.
func (u *Updater) install() error {
	path := u.path(Name)
	if !exists(path) {
		return u.perform(firstInstall(u.source, u.folder))
	}
	same, err := equal(u.source, path)
	if err != nil {
		return err
	}
	steps := u.tidy()
	if same {
		return u.perform(steps)
	}
	// Behind the mark the program may never have run, and the previous one is the one to go back to. A mark without a previous
	// program is from a crash in restore: the program ran.
	if !exists(u.path(pending)) || !exists(u.path(previous)) {
		steps = append(steps, func() error { return os.Link(path, u.path(previous)) })
	}
	return u.perform(append(steps,
		func() error { return files.Write(u.path(pending), nil, 0o600) },
		func() error { return files.Copy(path, u.source, 0o755) }))
}

// tidy returns the steps that remove what a crash at the end of a first install, or outside of a marked update, has left.
func (u *Updater) tidy() []step {
	leftovers := []string{u.path(first)}
	if !exists(u.path(pending)) {
		leftovers = append(leftovers, u.path(previous))
	}
	var steps []step
	for _, path := range slices.DeleteFunc(leftovers, func(path string) bool { return !exists(path) }) {
		steps = append(steps, func() error { return remove(path) })
	}
	return steps
}

// restore puts the previous program back, then removes the mark. A mark without one is from before a crash of the agent.
func (u *Updater) restore() error {
	return u.perform([]step{
		func() error {
			if err := os.Rename(u.path(previous), u.path(Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return files.SyncFolder(u.folder)
		},
		func() error { return remove(u.path(pending)) },
	})
}

// forget removes what an update needs until its end.
func (u *Updater) forget() error {
	return u.perform([]step{
		func() error { return remove(u.path(pending)) },
		func() error { return remove(u.path(previous)) },
	})
}

// step is one change of the node's folder.
type step func() error

// perform does steps in their order until one fails.
func perform(steps []step) error {
	for _, do := range steps {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// path returns the path of a file in the node's folder.
func (u *Updater) path(name string) string { return filepath.Join(u.folder, name) }

// remove removes a file, if it exists.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// equal compares two files, which may be larger than the agent's memory.
func equal(one, other string) (bool, error) {
	first, err := os.Open(one)
	if err != nil {
		return false, err
	}
	defer first.Close()
	second, err := os.Open(other)
	if err != nil {
		return false, err
	}
	defer second.Close()
	left, right := make([]byte, 1<<16), make([]byte, 1<<16)
	for {
		count, fault := io.ReadFull(first, left)
		reached, end := io.ReadFull(second, right)
		if !bytes.Equal(left[:count], right[:reached]) {
			return false, nil
		}
		if fault != nil || end != nil {
			return fault == end, unexpected(fault, end)
		}
	}
}

// unexpected returns the first error that is not the end of a file.
func unexpected(all ...error) error {
	for _, err := range all {
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
	}
	return nil
}
