package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// notices are the first letters of the names of files that hold a licence or a notice.
var notices = []string{"LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"}

// addModules adds the licences of the modules that a Go program contains to the file at path. Go writes the list of
// modules into each program. A program in another language adds nothing.
func addModules(files map[string][]byte, path, program, source string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil
	}
	for _, module := range info.Deps {
		folder, err := moduleFolder(module.Path+"@"+module.Version, source)
		if err != nil {
			return err
		}
		heading := fmt.Sprintf("===== %s %s\n\n", module.Path, module.Version)
		if bytes.Contains(files[path], []byte(heading)) {
			continue
		}
		text, err := licence(folder)
		if err != nil {
			return err
		}
		if len(text) == 0 {
			return fmt.Errorf("module %s has no licence file in %s", module.Path, folder)
		}
		files[path] = append(append(files[path], heading...), text...)
	}
	return nil
}

// moduleFolder returns the folder of a module in Go's cache. Go downloads a module that the cache lacks.
func moduleFolder(module, source string) (string, error) {
	command := exec.Command("go", "mod", "download", "-json", module)
	command.Dir, command.Stderr = source, os.Stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("module %s: %w", module, err)
	}
	var found struct{ Dir string }
	return found.Dir, json.Unmarshal(output, &found)
}

// licence returns the licences and notices in a module's first folder.
func licence(folder string) ([]byte, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var text []byte
	for _, entry := range entries {
		isNotice := func(start string) bool { return strings.HasPrefix(strings.ToUpper(entry.Name()), start) }
		if entry.IsDir() || !slices.ContainsFunc(notices, isNotice) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		text = append(append(text, content...), '\n')
	}
	return text, nil
}
