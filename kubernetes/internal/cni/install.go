package cni

import (
	"fmt"
	"os"
	"path/filepath"

	"softiov.io/kubernetes/internal/files"
)

// ProgramName is the name of the plugin, which is the type of a network's configuration.
const ProgramName = "softiov-cni"

// Install copies this program into a folder of CNI plugins. A plugin that runs meanwhile stays as it is.
func Install(folder string) error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(own)
	if err == nil {
		err = files.Write(filepath.Join(folder, ProgramName), content, 0o755)
	}
	if err != nil {
		return fmt.Errorf("install the CNI plugin: %w", err)
	}
	return nil
}
