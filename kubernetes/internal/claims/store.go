// Package claims keeps on disk which VFs were prepared for which claims, so that a restart of the agent loses nothing.
package claims

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"softiov.io/kubernetes/internal/files"
	"softiov.io/kubernetes/internal/host"
)

// version is the form of the files. A file of another version is refused.
const version = 1

// Device is one VF of a prepared claim.
type Device struct {
	VF     string `json:"vf"`
	Pool   string `json:"pool"`
	Folder string `json:"folder"`
	Socket string `json:"socket"`
	Family string `json:"family"`
	// MAC is the address with which the guest's frames pass the VF.
	MAC      string   `json:"mac,omitempty"`
	Requests []string `json:"requests"`
	// Settings are the policy that the claim set on the VF, and that ends with it.
	Settings host.Settings `json:"settings,omitempty"`
	// Wanted is the claim's whole policy, also values that the administrator had set before. It is nil in records of earlier
	// versions.
	Wanted host.Settings `json:"wanted"`
}

// Record is one claim with its VFs.
type Record struct {
	Version   int    `json:"version"`
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// PodClaim is the name of the claim in the pod's specification, if the claim was made from a template.
	PodClaim string   `json:"podClaim,omitempty"`
	Devices  []Device `json:"devices"`
	// Released is true if the claim has ended, and the host has not taken back its settings yet.
	Released bool `json:"released,omitempty"`
	// Derived is true if the record was rebuilt from the API, and kubelet has not asked for the claim since.
	Derived bool `json:"derived,omitempty"`
}

// Title returns namespace and name of the claim.
func (r *Record) Title() string { return r.Namespace + "/" + r.Name }

// Device returns a VF of the claim, or nil.
func (r *Record) Device(vf string) *Device {
	at := slices.IndexFunc(r.Devices, func(device Device) bool { return device.VF == vf })
	if at < 0 {
		return nil
	}
	return &r.Devices[at]
}

// Store is the folder with one file per claim.
type Store struct {
	folder string
	// Damaged has an error for each file that was unreadable when the store was opened, and was set aside.
	Damaged []error
}

// uidForm is the form of a claim's UID. It is the file's name, so it may not leave the folder.
var uidForm = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

const (
	// suffix ends the name of a record's file.
	suffix = ".json"
	// marker is a file that exists while no record is missing.
	marker = "complete"
	// recordMode is the mode of the store's files.
	recordMode = 0o600
)

// OpenStore creates the folder if it is missing, removes files that a crash left half-written, and sets damaged records
// aside, so that the agent can rebuild them.
func OpenStore(folder string) (*Store, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder of prepared claims: %w", err)
	}
	leftovers, err := filepath.Glob(filepath.Join(folder, "*.tmp"))
	if err != nil {
		return nil, err
	}
	for _, path := range leftovers {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove a half-written record: %w", err)
		}
	}
	store := &Store{folder: folder}
	paths, err := store.paths()
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if _, fault := read(path); fault != nil {
			aside := path + ".damaged"
			store.Damaged = append(store.Damaged, fmt.Errorf("%w; the file is now %s", fault, aside))
			if err := store.setAside(path, aside); err != nil {
				return nil, err
			}
		}
	}
	return store, nil
}

// setAside renames a damaged record. The folder is incomplete on the disk before: after a crash between both, nothing would
// rebuild the record.
func (s *Store) setAside(path, aside string) error {
	if err := os.Remove(filepath.Join(s.folder, marker)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(files.SyncFolder(s.folder), os.Rename(path, aside))
}

// IsComplete reports whether no record is missing. It is false for a new folder, which may stand for one that was lost,
// and after damage.
func (s *Store) IsComplete() bool {
	_, err := os.Stat(filepath.Join(s.folder, marker))
	return err == nil
}

// SetComplete notes on the disk that no record is missing.
func (s *Store) SetComplete() error {
	return files.Write(filepath.Join(s.folder, marker), nil, recordMode)
}

func (s *Store) paths() ([]string, error) {
	return filepath.Glob(filepath.Join(s.folder, "*"+suffix))
}

// Get returns the record of a claim, or nil if the claim is not prepared.
func (s *Store) Get(uid string) (*Record, error) {
	path, err := s.path(uid)
	if err != nil {
		return nil, err
	}
	record, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(err)
	}
	return record, nil
}

// All returns every record, by UID.
func (s *Store) All() ([]*Record, error) {
	paths, err := s.paths()
	if err != nil {
		return nil, err
	}
	var records []*Record
	for _, path := range paths {
		record, err := read(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, unreadable(err)
		}
		records = append(records, record)
	}
	return records, nil
}

// unreadable adds the remedy to the error of a record that must not be taken for a missing one.
func unreadable(err error) error { return fmt.Errorf("%w; restart the agent to rebuild it", err) }

// Put writes a record. After a crash or power failure the file has either the old or the new content.
func (s *Store) Put(record *Record) error {
	path, err := s.path(record.UID)
	if err != nil {
		return err
	}
	record.Version = version
	content, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	if err := files.Write(path, append(content, '\n'), recordMode); err != nil {
		return fmt.Errorf("keep the claim %s: %w", record.Title(), err)
	}
	return nil
}

// Delete removes the record of a claim. A missing record is no error.
func (s *Store) Delete(uid string) error {
	path, err := s.path(uid)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of a claim: %w", err)
	}
	return files.SyncFolder(s.folder)
}

func (s *Store) path(uid string) (string, error) {
	if !uidForm.MatchString(uid) {
		return "", fmt.Errorf("%q is not the UID of a claim", uid)
	}
	return filepath.Join(s.folder, uid+suffix), nil
}

// read reads and checks one file.
func read(path string) (*Record, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var record Record
	if err := json.Unmarshal(content, &record); err != nil {
		return nil, fmt.Errorf("the record %s is damaged: %w", path, err)
	}
	if record.Version != version {
		return nil, fmt.Errorf("the record %s has version %d; this agent reads version %d", path, record.Version, version)
	}
	if record.UID != strings.TrimSuffix(filepath.Base(path), suffix) {
		return nil, fmt.Errorf("the record %s is of another claim, %q", path, record.UID)
	}
	return &record, nil
}

// Holder returns the record that has a VF, other than that of the claim itself, or nil.
func Holder(records []*Record, vf, except string) *Record {
	at := slices.IndexFunc(records, func(record *Record) bool {
		return record.UID != except && slices.ContainsFunc(record.Devices, func(device Device) bool { return device.VF == vf })
	})
	if at < 0 {
		return nil
	}
	return records[at]
}
