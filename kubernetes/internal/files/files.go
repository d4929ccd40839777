// Package files writes files that outlive a crash.
package files

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// temporary ends the names of files that are written first.
const temporary = ".tmp"

// leftoverAge is the age from which on a temporary file is that of a program that was killed. No write takes so long.
const leftoverAge = time.Hour

// Write replaces a file in one step, and returns when the content is on the disk. It follows no link in the file's place. The
// file that it writes first is hidden, because other programs may read the folder.
func Write(path string, content []byte, mode os.FileMode) error {
	return replace(path, bytes.NewReader(content), mode)
}

// Copy replaces a file in one step by the content of another one, as Write does.
func Copy(path, source string, mode os.FileMode) error {
	content, err := os.Open(source)
	if err != nil {
		return err
	}
	defer content.Close()
	return replace(path, content, mode)
}

func replace(path string, content io.Reader, mode os.FileMode) error {
	folder, prefix := filepath.Dir(path), "."+filepath.Base(path)+"."
	if err := removeLeftovers(folder, prefix); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, prefix+"*"+temporary)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return SyncFolder(folder)
}

// removeLeftovers removes temporary files of programs that were killed. Names are compared, since a path may have signs that a
// pattern gives a meaning.
func removeLeftovers(folder, prefix string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), prefix) || !strings.HasSuffix(entry.Name(), temporary) {
			continue
		}
		// The file may vanish meanwhile. Another one that stays is no reason not to write.
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > leftoverAge {
			_ = os.Remove(filepath.Join(folder, entry.Name()))
		}
	}
	return nil
}

// SyncFolder waits until a changed folder is on the disk.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
