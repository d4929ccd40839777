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

// typeGuide types the guide's block of commands that has a text, as the administrator in a checkout, and returns what they
// print. What a user fills in is replaced by values.
func (c *testCluster) typeGuide(text string, values map[string]string) (string, error) {
	block, err := guideBlock("sh", text, values)
	if err != nil {
		return "", err
	}
	chart, err := filepath.Abs("..")
	if err != nil {
		return "", err
	}
	// The cluster's folder stands for the checkout: it has the user's values too.
	if err := os.Symlink(chart, filepath.Join(c.folder, "kubernetes")); err != nil && !os.IsExist(err) {
		return "", err
	}
	shell := exec.Command("sh", "-e", "-c", block)
	shell.Dir = c.folder
	shell.Env = append(os.Environ(), "HOME="+c.folder, "KUBECONFIG="+c.ca.path("admin.kubeconfig"), "PATH="+c.programs+":"+os.Getenv("PATH"))
	printed, err := shell.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s\n%s", guide, err, block, printed)
	}
	return string(printed), err
}

// guideBlock returns the guide's only block in a language that has a text, with values in place of what a user fills in.
func guideBlock(language, text string, values map[string]string) (string, error) {
	page, err := os.ReadFile(guide)
	if err != nil {
		return "", err
	}
	var found []string
	for _, part := range strings.Split(string(page), "```"+language+"\n")[1:] {
		if block, _, _ := strings.Cut(part, "```"); strings.Contains(block, text) {
			found = append(found, block)
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%s has %d blocks in %s with %q, want one", guide, len(found), language, text)
	}
	block := found[0]
	for word, value := range values {
		if !strings.Contains(block, word) {
			return "", fmt.Errorf("%s: the block with %q does not have %s", guide, text, word)
		}
		block = strings.ReplaceAll(block, word, value)
	}
	return block, nil
}
