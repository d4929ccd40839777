package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// notices are the first letters of the names of files that hold a licence or a notice.
var notices = []string{"LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "PATENTS"}

// unlinked are folders of a module or of Go whose packages no program of ours contains: commands, and data of tests.
var unlinked = []string{"cmd", "testdata"}

// addModules adds the licences of Go and of the modules that a Go program contains to the file at path. Go writes its
// version and the list of modules into each program.
func addModules(files map[string][]byte, path, program, source string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("has no list of Go modules: %w; name a program in another language by --foreign", err)
	}
	text, err := goLicence(info.GoVersion)
	if err != nil {
		return err
	}
	all := [][]byte{text}
	for _, module := range info.Deps {
		text, err := moduleLicence(module, source)
		if err != nil {
			return err
		}
		all = append(all, text)
	}
	for _, text := range all {
		if !bytes.Contains(files[path], text) {
			files[path] = append(files[path], text...)
		}
	}
	return nil
}

// goLicence returns the licence of Go's standard library, which is a part of each program but none of its modules.
func goLicence(version string) ([]byte, error) {
	output, err := exec.Command("go", "env", "-json", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("is a Go program, and go env failed: %w", err)
	}
	var here struct{ GOROOT, GOVERSION string }
	if err := json.Unmarshal(output, &here); err != nil {
		return nil, err
	}
	if here.GOVERSION != version {
		return nil, fmt.Errorf("was built with %s, and here is the licence of %s; build it again", version, here.GOVERSION)
	}
	return licence("Go "+version, here.GOROOT)
}

// moduleLicence returns the licences of a module, or of the module or folder that replaces it.
func moduleLicence(module *debug.Module, source string) ([]byte, error) {
	title, used := module.Path+" "+module.Version, module
	if module.Replace != nil {
		used = module.Replace
		title = strings.TrimSpace(title + ", replaced by " + used.Path + " " + used.Version)
	}
	// A folder has no version.
	folder := used.Path
	if used.Version != "" {
		var err error
		if folder, err = moduleFolder(used.Path+"@"+used.Version, source); err != nil {
			return nil, err
		}
	} else if !filepath.IsAbs(folder) {
		folder = filepath.Join(source, folder)
	}
	return licence(title, folder)
}

// moduleFolder returns the folder of a module in Go's cache. Go downloads a module that the cache lacks.
func moduleFolder(module, source string) (string, error) {
	command := exec.Command("go", "mod", "download", "-json", module)
	command.Dir, command.Stderr = source, os.Stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("has module %s: %w", module, err)
	}
	var found struct{ Dir string }
	return found.Dir, json.Unmarshal(output, &found)
}

// licence returns the licences and notices in a folder and in those below it, each once, below a heading with the title. Packages
// of a module may have notices of their own, such as forked ones.
func licence(title, folder string) ([]byte, error) {
	heading := fmt.Sprintf("===== %s\n\n", title)
	text := []byte(heading)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(unlinked, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || !isNotice(entry.Name()):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Contains(text, content) {
			return nil
		}
		if below, err := filepath.Rel(folder, path); err == nil && below != entry.Name() {
			text = fmt.Appendf(text, "--- %s\n\n", filepath.ToSlash(below))
		}
		text = append(append(text, content...), '\n')
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(text) == len(heading) {
		return nil, fmt.Errorf("has %s, whose folder %s has no licence", title, folder)
	}
	return text, nil
}

// isNotice returns true if a file of this name holds a licence or a notice. Sources such as licence.go do not.
func isNotice(name string) bool {
	upper := strings.ToUpper(name)
	starts := func(start string) bool { return strings.HasPrefix(upper, start) }
	return filepath.Ext(name) != ".go" && slices.ContainsFunc(notices, starts)
}
