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
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/files"
	"softiov.io/kubernetes/internal/host"
)

const (
	// Name is the name of the program in its folder.
	Name = "softiov"
	// pending is the name of a file that exists from before the program is replaced until a host runs it.
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
	fault error
}

// InstallMissing copies the program into the node's folder, unless there is one: a pod of an older image must not bring back
// its program.
func InstallMissing(source, folder string) error {
	path := filepath.Join(folder, Name)
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	content, err := os.ReadFile(source)
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err == nil {
		err = files.Write(path, content, 0o755)
	}
	if err != nil {
		return fmt.Errorf("install the host's program: %w", err)
	}
	return nil
}

// Run installs the image's program, and has the running host replaced by it. It tries again until that has succeeded.
func (u *Updater) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	u.report(errors.New("the host's program was not compared yet"))
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		replaced, err := u.update(ctx)
		u.report(err)
		if err == nil {
			if replaced {
				logger.Info("A host of the image's program has taken over", "program", filepath.Join(u.Folder, Name))
			}
			return
		}
		logger.Error(err, "Could not update the host's program", "nextAttemptIn", pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// Fault returns why the host does not run the image's program, or nil.
func (u *Updater) Fault() error {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	return u.fault
}

func (u *Updater) report(fault error) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.fault = fault
}

// update makes one attempt. Returns true if another host has taken over.
func (u *Updater) update(ctx context.Context) (bool, error) {
	if err := u.install(); err != nil {
		return false, fmt.Errorf("install the host's program: %w", err)
	}
	mark := filepath.Join(u.Folder, pending)
	if _, err := os.Lstat(mark); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	// A host that starts meanwhile has the new program already. Another hand-over does no harm: guests stay connected.
	if err := u.Host.Upgrade(ctx); err != nil {
		return false, fmt.Errorf("replace the running host: %w", err)
	}
	return true, os.Remove(mark)
}

// install replaces the node's program if the image's has other bytes. The mark is written first: if this process ends in
// between, the next one knows that the host may be of the old program.
func (u *Updater) install() error {
	content, err := os.ReadFile(u.Source)
	if err != nil {
		return err
	}
	path := filepath.Join(u.Folder, Name)
	installed, err := os.ReadFile(path)
	if err == nil && bytes.Equal(installed, content) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(u.Folder, 0o755); err != nil {
		return err
	}
	if err := files.Write(filepath.Join(u.Folder, pending), nil, 0o600); err != nil {
		return err
	}
	return files.Write(path, content, 0o755)
}
