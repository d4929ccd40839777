package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const tag = "localhost/softiov:test"

// agent builds the node agent as the image has it, and returns its path.
func agent(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "softiov-node")
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", program, "./cmd/softiov-node")
	command.Dir = "../.."
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return program
}

// archived is a file of an image.
type archived struct {
	mode    int64
	content []byte
}

// files returns the files of an image by path, without folders.
func files(t *testing.T, image v1.Image) map[string]archived {
	t.Helper()
	found := map[string]archived{}
	var archive bytes.Buffer
	if err := crane.Export(image, &archive); err != nil {
		t.Fatal(err)
	}
	reader := tar.NewReader(&archive)
	for {
		header, err := reader.Next()
		if err == io.EOF {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s belongs to %d:%d", header.Name, header.Uid, header.Gid)
		}
		if header.Typeflag == tar.TypeDir {
			continue
		}
		if header.Typeflag != tar.TypeReg {
			t.Errorf("%s is no file", header.Name)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		found["/"+header.Name] = archived{header.Mode, content}
	}
}

// scan fails if the image has other files than the list, dynamic programs or no licence of a Go module.
func scan(t *testing.T, image v1.Image, want []string) {
	t.Helper()
	found := files(t, image)
	var names []string
	for name, file := range found {
		names = append(names, name)
		if !isProgram(file.content) {
			if file.mode != 0o644 {
				t.Errorf("%s has mode %o", name, file.mode)
			}
			continue
		}
		if err := checkStatic(file.content); err != nil || file.mode != 0o755 {
			t.Errorf("%s has mode %o: %v", name, file.mode, err)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("the image has %q, want %q", names, want)
	}
	licences := string(found["/licences/modules.txt"].content)
	for _, part := range []string{"===== Go go1.", "Copyright 2009 The Go Authors", "===== k8s.io/client-go v", "===== google.golang.org/grpc v", "--- third_party/forked/golang/LICENSE", "Apache License", "Redistribution and use in source and binary forms"} {
		if !strings.Contains(licences, part) {
			t.Errorf("the licences of the Go modules lack %q", part)
		}
	}
}

func load(t *testing.T, file string) v1.Image {
	t.Helper()
	image, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestEqualFilesGiveEqualImages(t *testing.T) {
	folder := t.TempDir()
	var archives [2][]byte
	var digests [2]string
	for turn, order := range [][]string{{"/softiov-node", "/licences/LICENSE-MIT"}, {"/licences/LICENSE-MIT", "/softiov-node"}} {
		out := filepath.Join(folder, "image.tar")
		from := map[string]string{"/softiov-node": agent(t), "/licences/LICENSE-MIT": "../../../LICENSE-MIT"}
		var arguments []string
		for _, path := range order {
			arguments = append(arguments, path+"="+from[path])
		}
		var err error
		if digests[turn], err = run(arguments, settings{out: out, tag: tag, version: "1.2.3", modules: "/licences/modules.txt", source: "../.."}); err != nil {
			t.Fatal(err)
		}
		if archives[turn], err = os.ReadFile(out); err != nil {
			t.Fatal(err)
		}
		scan(t, load(t, out), []string{"/licences/LICENSE-MIT", "/licences/modules.txt", "/softiov-node"})
	}
	if digests[0] != digests[1] || !bytes.Equal(archives[0], archives[1]) {
		t.Errorf("two builds differ: %s, %s", digests[0], digests[1])
	}
}

// program writes the headers of a program of a machine with one segment, and returns its path.
func program(t *testing.T, machine elf.Machine, segment elf.ProgType) string {
	t.Helper()
	var content bytes.Buffer
	header := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1}
	copy(header.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	for _, part := range []any{header, elf.Prog64{Type: uint32(segment)}} {
		if err := binary.Write(&content, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, content.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestProgramsThatNeedOthersAreRefused(t *testing.T) {
	static := program(t, elf.EM_X86_64, elf.PT_LOAD)
	for _, test := range []struct {
		arguments []string
		modules   string
		want      string
	}{
		{[]string{"/sh=" + program(t, elf.EM_X86_64, elf.PT_INTERP)}, "", "/sh: the program needs a dynamic linker"},
		{[]string{"/a=" + static, "/b=" + program(t, elf.EM_AARCH64, elf.PT_LOAD)}, "", "/b is a program for arm64, and another one is for amd64"},
		{[]string{"/a=" + program(t, elf.EM_SPARC, elf.PT_LOAD)}, "", "/a is a program for EM_SPARC"},
		{[]string{"/a=" + static}, "/licences/modules.txt", "/a has no list of Go modules"},
		{[]string{"/licences/LICENSE-MIT=../../../LICENSE-MIT"}, "", "the image has no program"},
		{[]string{"softiov"}, "", "/PATH=FILE"},
	} {
		out := filepath.Join(t.TempDir(), "image.tar")
		_, err := run(test.arguments, settings{out: out, tag: tag, modules: test.modules, source: "../.."})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.arguments, err, test.want)
		}
	}
}

func TestImageHasTheMachineOfItsPrograms(t *testing.T) {
	for machine, want := range map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"} {
		out := filepath.Join(t.TempDir(), "image.tar")
		foreign := settings{out: out, tag: tag, modules: "/licences/modules.txt", foreign: []string{"/a"}}
		if _, err := run([]string{"/a=" + program(t, machine, elf.PT_LOAD)}, foreign); err != nil {
			t.Fatal(err)
		}
		if config, err := load(t, out).ConfigFile(); err != nil || config.Architecture != want {
			t.Errorf("%v, %v, want %s", config, err, want)
		}
	}
}

func TestReplacedModuleHasTheLicenceOfItsReplacement(t *testing.T) {
	source := t.TempDir()
	if err := os.MkdirAll(filepath.Join(source, "fork"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "fork/LICENSE"), []byte("the fork's terms"), 0o644); err != nil {
		t.Fatal(err)
	}
	replaced := &debug.Module{Path: "example.com/a", Version: "v1.0.0", Replace: &debug.Module{Path: "./fork"}}
	text, err := moduleLicence(replaced, source)
	if err != nil || string(text) != "===== example.com/a v1.0.0, replaced by ./fork\n\nthe fork's terms\n" {
		t.Errorf("%v, %s", err, text)
	}
}

// The guide pushes the archive with crane.
func TestRegistryReturnsThePushedImage(t *testing.T) {
	out := filepath.Join(t.TempDir(), "image.tar")
	digest, err := run([]string{"/a=" + program(t, elf.EM_X86_64, elf.PT_LOAD)}, settings{out: out, tag: tag})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	there := strings.TrimPrefix(server.URL, "http://") + "/softiov:1.2.3"
	if output, err := exec.Command("go", "tool", "crane", "push", out, there).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if got, err := crane.Digest(there); err != nil || got != digest {
		t.Errorf("the registry has %s, %v; want %s", got, err, digest)
	}
}

// SOFTIOV_IMAGE is the archive that `cargo xtask image` has written.
func TestBuiltImageHasTwoProgramsAndLicences(t *testing.T) {
	built := os.Getenv("SOFTIOV_IMAGE")
	if built == "" {
		t.Skip("SOFTIOV_IMAGE names no image; run cargo xtask image before")
	}
	image := load(t, built)
	scan(t, image, []string{"/licences/LICENSE-APACHE", "/licences/LICENSE-MIT", "/licences/compiler-builtins.txt",
		"/licences/crates.txt", "/licences/modules.txt", "/licences/musl.txt", "/licences/rust-library.html", "/softiov", "/softiov-node"})
	found := files(t, image)
	for file, parts := range map[string][]string{
		"/licences/crates.txt":            {"===== serde ", "Permission is hereby granted"},
		"/licences/compiler-builtins.txt": {"Permission is hereby granted"},
		"/licences/musl.txt":              {"Rich Felker", "Permission is hereby granted"},
		"/licences/rust-library.html":     {"The Rust Standard Library", "hashbrown"},
	} {
		for _, part := range parts {
			if !strings.Contains(string(found[file].content), part) {
				t.Errorf("%s lacks %q", file, part)
			}
		}
	}
}
