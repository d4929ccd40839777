package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// guide is the page whose commands the test types.
const guide = "../../docs/guide/kubernetes.md"

// typeGuide types the guide's block of commands that has a text, as the administrator in a checkout. What a user fills in is
// replaced by values.
func (c *testCluster) typeGuide(text string, values map[string]string) error {
	page, err := os.ReadFile(guide)
	if err != nil {
		return err
	}
	block, err := blockWith(string(page), text)
	if err != nil {
		return err
	}
	for word, value := range values {
		if !strings.Contains(block, word) {
			return fmt.Errorf("%s: the commands with %q do not have %s", guide, text, word)
		}
		block = strings.ReplaceAll(block, word, value)
	}
	chart, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	// The cluster's folder stands for the checkout: it has the user's values too.
	if err := os.Symlink(chart, filepath.Join(c.folder, "kubernetes")); err != nil && !os.IsExist(err) {
		return err
	}
	shell := exec.Command("sh", "-e", "-c", block)
	shell.Dir = c.folder
	shell.Env = append(os.Environ(), "HOME="+c.folder, "KUBECONFIG="+c.ca.path("admin.kubeconfig"), "PATH="+c.programs+":"+os.Getenv("PATH"))
	if printed, err := shell.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s\n%s", guide, err, block, printed)
	}
	return nil
}

// blockWith returns the page's only block of commands that has a text.
func blockWith(page, text string) (string, error) {
	var found []string
	for _, part := range strings.Split(page, "```sh\n")[1:] {
		if block, _, _ := strings.Cut(part, "```"); strings.Contains(block, text) {
			found = append(found, block)
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%s has %d blocks of commands with %q, want one", guide, len(found), text)
	}
	return found[0], nil
}
