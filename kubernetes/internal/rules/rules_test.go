// Package rules checks the module as a whole: licences of its dependencies, and lengths of its files.
package rules

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	// root is the folder of the module.
	root = "../.."
	// maxLines is the greatest length of a file.
	maxLines = 400
)

// phrases identify a licence by its text. The order matters: later texts contain phrases of earlier ones.
var phrases = []struct{ licence, phrase string }{
	{"Apache-2.0", "Apache License Version 2.0"},
	{"BSD-3-Clause", "Neither the name of"},
	{"BSD-2-Clause", "Redistributions in binary form must reproduce the above copyright notice"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software"},
	{"MIT", "Permission is hereby granted, free of charge"},
}

// forbidden are phrases of licences that demand more than a notice.
var forbidden = []string{"GNU GENERAL PUBLIC LICENSE", "GNU LESSER GENERAL", "GNU AFFERO", "Mozilla Public License", "Server Side Public"}

// TestLicencesAreListedAndPermissive compares licences.txt with the modules that the command and its tests consist of.
func TestLicencesAreListedAndPermissive(t *testing.T) {
	command := exec.Command("go", "list", "-deps", "-test", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}", "./...")
	command.Dir = root
	var faults bytes.Buffer
	command.Stderr = &faults
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, faults.String())
	}
	var lines []string
	for _, line := range slices.Compact(sorted(strings.Split(strings.TrimSpace(string(output)), "\n"))) {
		path, folder, found := strings.Cut(line, " ")
		if !found {
			continue
		}
		licence, err := licenceOf(folder)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		lines = append(lines, path+" "+licence)
	}
	listed, err := os.ReadFile(filepath.Join(root, "licences.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(lines, "\n") + "\n"; string(listed) != want {
		t.Errorf("licences.txt does not list the modules; it should be:\n%s", want)
	}
}

// licenceOf returns the permissive licence of a module by the text of its licence file.
func licenceOf(folder string) (string, error) {
	for _, name := range []string{"LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "COPYING"} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			continue
		}
		text := strings.Join(strings.Fields(string(content)), " ")
		for _, phrase := range forbidden {
			if strings.Contains(text, phrase) {
				return "", fmt.Errorf("%s contains %q; remove the module", name, phrase)
			}
		}
		for _, known := range phrases {
			if strings.Contains(text, known.phrase) {
				return known.licence, nil
			}
		}
		return "", fmt.Errorf("the text of %s is unknown; if it is permissive, add a phrase of it to this test", name)
	}
	return "", fmt.Errorf("no licence file; remove the module")
}

func sorted(items []string) []string {
	slices.Sort(items)
	return items
}

func TestFilesAreShort(t *testing.T) {
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		content, err := os.ReadFile(path)
		if lines := bytes.Count(content, []byte("\n")); lines > maxLines {
			t.Errorf("%s has %d lines; the maximum is %d: divide it by idea", path, lines, maxLines)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
