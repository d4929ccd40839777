package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the folder of the checkout.
const root = "../../.."

// pages are the guide's pages with commands, and the script of the example for a CI.
var pages = []string{"docs/guide/kubernetes.md", "docs/guide/kubernetes-ci.md", "docs/examples/kubernetes-ci/run.sh"}

// foreign are programs of others. A cluster of a test, or a user's, knows their flags.
var foreign = []string{"kubectl", "kind", "ctr", "rustup"}

// shell are words of the shell that begin a line of the pages.
var shell = []string{"done", "set", "trap", "show()", "}", "softiov=$1"}

// page checks the commands of the guide's pages.
type page struct {
	t *testing.T
	// commands is the number of checked commands of each program.
	commands map[string]int
}

// lines returns the commands of a page's blocks, or of a script, without comments, one for each line.
func lines(text string, isScript bool) []string {
	blocks := []string{text}
	if !isScript {
		blocks = strings.Split(text, "```sh\n")[1:]
		for i := range blocks {
			blocks[i], _, _ = strings.Cut(blocks[i], "```")
		}
	}
	var all []string
	for _, line := range strings.Split(strings.ReplaceAll(strings.Join(blocks, "\n"), "\\\n", " "), "\n") {
		line, _, _ = strings.Cut(" "+line, " #")
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// check checks one line: the program exists, and has the subcommand and the flags.
func (p *page) check(line string) error {
	// A command in another folder: (cd FOLDER && COMMAND).
	if inner, found := strings.CutPrefix(line, "(cd "); found {
		folder, command, _ := strings.Cut(strings.TrimSuffix(inner, ")"), " && ")
		folder = strings.NewReplacer(`"$softiov"`, ".").Replace(folder)
		if _, err := os.Stat(filepath.Join(root, folder)); err != nil {
			return err
		}
		return p.check(command)
	}
	// A loop over the output of a command: for NAME in $(COMMAND); do.
	if _, inner, found := strings.Cut(line, " in $("); found {
		line = strings.TrimSuffix(inner, "); do")
	}
	line, _, _ = strings.Cut(line, " || ")
	words := strings.Fields(strings.NewReplacer(`"`, "", "'", "").Replace(line))
	program := words[0]
	p.commands[path.Base(program)]++
	switch {
	case slices.Contains(shell, program):
		return nil
	case program == "/softiov", program == "/var/lib/softiov/bin/softiov":
		return p.host(words[1:])
	case program == "/softiov-node":
		return agentCommand(words[1:])
	case program == "helm":
		return chartCommand(words[1:])
	case program == "go":
		return toolCommand(words[1:])
	case program == "cargo" && words[1] == "xtask":
		// A test of xtask reads its flags.
		return nil
	case program == "kubectl":
		return p.kubectl(words[1:])
	case slices.Contains(foreign, program):
		return nil
	}
	return fmt.Errorf("unknown program %s", program)
}

// kubectl checks the chart's objects that a command names, and the command that it executes in a container.
func (p *page) kubectl(words []string) error {
	manifests, err := os.ReadFile(filepath.Join(root, "kubernetes/kustomize/softiov.yaml"))
	if err != nil {
		return err
	}
	for i, word := range words {
		if word == "--" {
			return p.check(strings.Join(words[i+1:], " "))
		}
		if _, name, found := strings.Cut(word, "daemonset/"); found && !strings.Contains(string(manifests), "\n  name: "+name+"\n") {
			return fmt.Errorf("the chart has no DaemonSet %s", name)
		}
		if i > 0 && words[i-1] == "--selector" && !strings.Contains(string(manifests), strings.ReplaceAll(word, "=", ": ")) {
			return fmt.Errorf("the chart has no pod with the label %s", word)
		}
	}
	return nil
}

// host lets the softiov command itself read subcommand and flags, if a test has it.
func (p *page) host(words []string) error {
	program := os.Getenv(hostProgram)
	if program == "" {
		p.t.Logf("SKIPPED: %s does not name the softiov command", hostProgram)
		return nil
	}
	// A wrong flag before it is an error.
	output, err := exec.Command(program, append(words, "--help")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

// agentCommand checks a command of this program.
func agentCommand(words []string) error {
	name := words[0]
	if !strings.Contains(usage, "\n  softiov-node "+name+" ") && !strings.Contains(usage, "\n  softiov-node ["+name+"] ") {
		return fmt.Errorf("softiov-node has no command %s", name)
	}
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	flags(set)
	return set.Parse(words[1:])
}

// toolCommand checks a tool of the module kubernetes/tools.
func toolCommand(words []string) error {
	module, err := os.ReadFile(filepath.Join(root, "kubernetes/tools/go.mod"))
	if err != nil {
		return err
	}
	if words[0] != "tool" || !regexp.MustCompile(`(?m)^tool .*/`+regexp.QuoteMeta(words[1])+`$`).Match(module) {
		return fmt.Errorf("kubernetes/tools has no tool %s", words[1])
	}
	return nil
}

// valueSchema is what this test reads of the schema of the chart's values.
type valueSchema struct{ Properties map[string]valueSchema }

// values returns the schema of the chart's values.
func values() (valueSchema, error) {
	var all valueSchema
	content, err := os.ReadFile(filepath.Join(root, "kubernetes/chart/values.schema.json"))
	if err == nil {
		err = json.Unmarshal(content, &all)
	}
	return all, err
}

// has reports whether a value of the chart exists, such as agent.dra.
func (s valueSchema) has(value string) bool {
	for _, key := range strings.Split(value, ".") {
		inner, found := s.Properties[key]
		if !found {
			return false
		}
		s = inner
	}
	return true
}

// chartCommand checks the chart and the values of a command of helm.
func chartCommand(words []string) error {
	all, err := values()
	if err != nil {
		return err
	}
	for i, word := range words {
		value, _, _ := strings.Cut(word, "=")
		switch {
		case words[0] == "upgrade" && word == "--set":
			return errors.New("helm upgrade --set forgets the values of before")
		case i > 0 && words[i-1] == "--set" && !all.has(value):
			return fmt.Errorf("the chart has no value %s", value)
		case strings.HasSuffix(word, "/chart"):
			if _, err := os.Stat(filepath.Join(root, strings.TrimPrefix(word, "$softiov/"))); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestCommandsOfTheGuideExist(t *testing.T) {
	p := &page{t: t, commands: map[string]int{}}
	for _, name := range pages {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines(string(text), filepath.Ext(name) == ".sh") {
			if err := p.check(line); err != nil {
				t.Errorf("%s: %s: %v", name, line, err)
			}
		}
	}
	for _, program := range []string{"softiov", "softiov-node", "helm", "cargo", "go", "kubectl"} {
		if p.commands[program] == 0 {
			t.Errorf("no command of %s is checked, only those of %q", program, slices.Sorted(maps.Keys(p.commands)))
		}
	}
}

// The check finds the faults that it is for.
func TestCommandsThatDoNotExistAreFound(t *testing.T) {
	p := &page{t: t, commands: map[string]int{}}
	faulty := []string{
		"apt install softiov", "kubectl exec pod -- /softiov-node statsu", "/softiov-node status --stat /x", "helm install softiov charts/chart",
		"helm install softiov kubernetes/chart --set image.repo=a", "(cd kubernetes/tool && go tool crane push)", "(cd kubernetes/tools && go tool kran)",
		"helm upgrade softiov kubernetes/chart --set image.tag=a", "kubectl rollout status daemonset/softiov-hots", "kubectl get pods --selector app.kubernetes.io/component=hots",
	}
	if os.Getenv(hostProgram) != "" {
		faulty = append(faulty, "/softiov vf lsit", "/softiov vf list --runtimedir /x")
	}
	for _, line := range faulty {
		if p.check(line) == nil {
			t.Errorf("%s is no error", line)
		}
	}
}

func TestPodOfTheGuideStartsQEMUAsTheUserGuideDoes(t *testing.T) {
	read := func(name, before, after string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		_, rest, found := strings.Cut(string(text), before)
		block, _, ended := strings.Cut(rest, after)
		if err != nil || !found || !ended {
			t.Fatalf("%s has no block between %q and %q: %v", name, before, after, err)
		}
		return block
	}
	printed := read("docs/user-guide.md", "softiov qemu-args pf0vf0 --memory 2G\n```\n\nThis prints the arguments for the QEMU command line:\n\n```\n", "\n```")
	want := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(printed, "\\\n", " "), "/pf0vf0/", "/template/nic/nic/"))
	typed := strings.Split(read(pages[0], "    args:\n    - ", "\n    resources:"), "\n    - ")
	if !slices.Equal(typed, want) {
		t.Errorf("the pod has %q, want %q", typed, want)
	}
}

func TestValuesOfTheGuideAreTheCharts(t *testing.T) {
	all, err := values()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, pages[0]))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| value | meaning |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	explained := regexp.MustCompile("(?m)^\\| `([a-zA-Z.]+)`").FindAllStringSubmatch(table, -1)
	for _, value := range explained {
		if !all.has(value[1]) {
			t.Errorf("the chart has no value %s", value[1])
		}
	}
	for _, part := range []string{"host", "agent"} {
		for key := range all.Properties[part].Properties {
			value := part + "." + key
			if !slices.ContainsFunc(explained, func(one []string) bool { return one[1] == value }) {
				t.Errorf("the guide does not explain %s", value)
			}
		}
	}
}

func TestCommandsOfTheUsageAreThoseOfTheProgram(t *testing.T) {
	names := regexp.MustCompile(`(?m)^  softiov-node (\w[\w-]*)`).FindAllStringSubmatch(usage, -1)
	for _, name := range append(names, []string{"", "reset"}) {
		if name[1] == "binding" {
			continue // It serves until its end.
		}
		err := execute(name[1], &config{state: t.TempDir()}, nil)
		if unknown := err != nil && strings.Contains(err.Error(), "unknown command"); unknown != (name[1] == "reset") {
			t.Errorf("%s: %v", name[1], err)
		}
	}
	if len(names) < 5 {
		t.Errorf("the usage has %d commands", len(names))
	}
}
