package files

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWriteReplacesTheFileAndRemovesOldTemporaries(t *testing.T) {
	// The folder's name is no valid pattern.
	folder := filepath.Join(t.TempDir(), "a[b")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "vf")
	old, current, others := filepath.Join(folder, ".vf.1.tmp"), filepath.Join(folder, ".vf.2.tmp"), filepath.Join(folder, ".vfs.1.tmp")
	for _, file := range []string{path, old, current, others} {
		if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A program that was killed has left these; another one may still write the current one.
	past := time.Now().Add(-2 * leftoverAge)
	for _, file := range []string{old, others} {
		if err := os.Chtimes(file, past, past); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(path, []byte("after"), 0o644); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "after" {
		t.Errorf("%v, %s", err, content)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", err, info)
	}
	for file, want := range map[string]bool{old: false, current: true, others: true} {
		if _, err := os.Stat(file); os.IsNotExist(err) == want {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestWriteFollowsNoLink(t *testing.T) {
	folder := t.TempDir()
	target, link := filepath.Join(folder, "target"), filepath.Join(folder, "link")
	if err := os.WriteFile(target, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := Write(link, []byte("after"), 0o600); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(target); err != nil || string(content) != "before" {
		t.Errorf("%v, %s", err, content)
	}
}
