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
	"sync"
	"time"

	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/files"
	"softiov.io/kubernetes/internal/host"
)

// Names in the node's folder.
const (
	// Name is that of the program from which the keeper starts hosts.
	Name = "softiov"
	// previous is that of the program before it, until a host of the new one has taken over.
	previous = "softiov.previous"
	// pending is that of a file that exists from before the program is replaced until a host of it has taken over.
	pending = "softiov.pending"
)

// Pauses between two attempts to have the host replaced: the first one, and the longest.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// Updater keeps the node's program equal to that of the image.
type Updater struct {
	// Source is the image's program, and Folder the node's folder for it.
	Source, Folder string
	Host           *host.Client

	mutex sync.Mutex
	// isDone is true after the update, and fault has the last attempt's error.
	isDone bool
	fault  error
}

// InstallMissing copies the program into the node's folder, unless there is one: a pod of an older image must not bring back
// its program.
func InstallMissing(source, folder string) error {
	path := filepath.Join(folder, Name)
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	err := os.MkdirAll(folder, 0o755)
	if err == nil {
		err = files.Copy(path, source, 0o755)
	}
	if err != nil {
		return fmt.Errorf("install the host's program: %w", err)
	}
	return nil
}

// Run installs the image's program, and has the running host replaced by it. It tries again until that has succeeded, or the
// host has refused: each attempt lets guests wait.
func (u *Updater) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := u.update(ctx)
		u.report(err)
		var refusal *host.Problem
		switch {
		case err == nil:
			return
		case errors.As(err, &refusal):
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
	if !u.isDone && u.fault == nil {
		return errors.New("the host's program is not compared yet")
	}
	return u.fault
}

func (u *Updater) report(fault error) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.isDone, u.fault = fault == nil, fault
}

// update makes one attempt.
func (u *Updater) update(ctx context.Context) error {
	if err := u.install(); err != nil {
		return fmt.Errorf("install the host's program: %w", err)
	}
	if _, err := os.Lstat(u.path(pending)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// A host that starts meanwhile has the new program already. Another hand-over does no harm: guests stay connected.
	err := u.Host.Upgrade(ctx)
	var refusal *host.Problem
	if errors.As(err, &refusal) {
		// If the host dies, the keeper must find a program that runs.
		return errors.Join(fmt.Errorf("replace the running host: %w", err), u.restore())
	}
	if err != nil {
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
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return InstallMissing(u.Source, u.Folder)
	}
	if same, err := equal(u.Source, path); err != nil || same {
		return err
	}
	// A program behind the mark has not run yet, and is none to go back to.
	if _, err := os.Lstat(u.path(pending)); errors.Is(err, fs.ErrNotExist) {
		if err := errors.Join(remove(u.path(previous)), os.Link(path, u.path(previous))); err != nil {
			return err
		}
	}
	if err := files.Write(u.path(pending), nil, 0o600); err != nil {
		return err
	}
	return files.Copy(path, u.Source, 0o755)
}

// restore puts the previous program back. A mark without one is from before a crash of the agent.
func (u *Updater) restore() error {
	if err := os.Rename(u.path(previous), u.path(Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return remove(u.path(pending))
}

// forget removes what an update needs until its end.
func (u *Updater) forget() error {
	return errors.Join(remove(u.path(pending)), remove(u.path(previous)))
}

// path returns the path of a file in the node's folder.
func (u *Updater) path(name string) string { return filepath.Join(u.Folder, name) }

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
