// Package drain keeps the names of ports and VFs that take no new pods, over restarts of the agent.
package drain

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"softiov.io/kubernetes/internal/files"
)

// Set is the drained names. It is safe for concurrent use.
type Set struct {
	path  string
	mutex sync.Mutex
	names []string
}

// Open reads the set from a file. A missing file is an empty set.
func Open(path string) (*Set, error) {
	set := &Set{path: path}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return set, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &set.names)
	}
	if err != nil {
		return nil, fmt.Errorf("read the drained VFs from %s: %w; correct or remove the file", path, err)
	}
	return set, nil
}

// Names returns the drained names, sorted.
func (s *Set) Names() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.names)
}

// Add adds a name. The set is on the disk before Add returns.
func (s *Set) Add(name string) error {
	return s.change(func(names []string) []string {
		if slices.Contains(names, name) {
			return names
		}
		return append(names, name)
	})
}

// Remove removes a name.
func (s *Set) Remove(name string) error {
	return s.change(func(names []string) []string {
		return slices.DeleteFunc(names, func(other string) bool { return other == name })
	})
}

func (s *Set) change(edit func([]string) []string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	names := edit(slices.Clone(s.names))
	slices.Sort(names)
	content, err := json.Marshal(names)
	if err != nil {
		return err
	}
	if err := files.Write(s.path, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("keep the drained VFs: %w", err)
	}
	s.names = names
	return nil
}
