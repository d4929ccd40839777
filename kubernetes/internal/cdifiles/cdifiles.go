// Package cdifiles writes the files by which a container runtime gives a claim's VFs to containers (CDI).
package cdifiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"softiov.io/kubernetes/internal/claims"
)

const (
	vendor = "softiov.io"
	class  = "vf"
	// Folder is where container runtimes look for files that change while the machine runs.
	Folder = "/var/run/cdi"
)

// Files is the folder with one file per claim.
type Files struct {
	folder string
	cache  *cdi.Cache
}

// Open returns the files in a folder, which the first write creates.
func Open(folder string) (*Files, error) {
	// Nothing is read through the cache, so it need not follow the folder.
	cache, err := cdi.NewCache(cdi.WithSpecDirs(folder), cdi.WithAutoRefresh(false))
	if err != nil {
		return nil, fmt.Errorf("open the CDI folder %s: %w", folder, err)
	}
	return &Files{folder: folder, cache: cache}, nil
}

// DeviceID returns the name by which kubelet and container runtime know a VF of a claim. It has the claim's UID, so it
// is never used again: a runtime that still knows an older file cannot confuse them.
func DeviceID(uid, vf string) string {
	return parser.QualifiedName(vendor, class, uid+"-"+vf)
}

// Write writes the file of a claim, and replaces an older one in one step. It leaves a file alone that is right already.
func (f *Files) Write(record *claims.Record) error {
	spec := &specs.Spec{Kind: vendor + "/" + class}
	for _, device := range record.Devices {
		spec.Devices = append(spec.Devices, specs.Device{Name: record.UID + "-" + device.VF, ContainerEdits: Edits(record, &device)})
	}
	minimum, err := specs.MinimumRequiredVersion(spec)
	if err != nil {
		return err
	}
	// Older runtimes refuse files of a newer version than they know.
	spec.Version = minimum
	if content, err := json.Marshal(spec); err == nil {
		if present, err := os.ReadFile(filepath.Join(f.folder, name(record.UID))); err == nil && bytes.Equal(present, content) {
			return nil
		}
	}
	if err := f.cache.WriteSpec(spec, name(record.UID)); err != nil {
		return fmt.Errorf("write the CDI file of claim %s: %w", record.Title(), err)
	}
	return nil
}

// Remove removes the file of a claim. A missing file is no error.
func (f *Files) Remove(uid string) error {
	if err := f.cache.RemoveSpec(name(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the CDI file of claim %s: %w", uid, err)
	}
	return nil
}

// RemoveOthers removes files of claims that are not among the UIDs: those whose record is gone.
func (f *Files) RemoveOthers(uids map[string]bool) error {
	prefix := cdi.GenerateTransientSpecName(vendor, class, "")
	paths, err := filepath.Glob(filepath.Join(f.folder, prefix+"*.json"))
	if err != nil {
		return err
	}
	var faults []error
	for _, path := range paths {
		uid := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), prefix), ".json")
		if !uids[uid] {
			faults = append(faults, os.Remove(path))
		}
	}
	return errors.Join(faults...)
}

func name(uid string) string {
	return cdi.GenerateTransientSpecName(vendor, class, uid) + ".json"
}
