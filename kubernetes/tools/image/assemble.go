package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// isProgram returns true for a file in the format of Linux programs.
func isProgram(content []byte) bool {
	return bytes.HasPrefix(content, []byte(elf.ELFMAG))
}

// checkStatic returns an error for a program that needs a dynamic linker, which the image does not have.
func checkStatic(content []byte) error {
	program, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return err
	}
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP {
			return fmt.Errorf("the program needs a dynamic linker; build it for a static target")
		}
	}
	return nil
}

// architectures are the names that images have for machines (Go's GOARCH).
var architectures = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}

// architecture returns the machine that all programs of the image are for.
func architecture(files map[string][]byte) (string, error) {
	found := ""
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if !isProgram(files[file]) {
			continue
		}
		program, err := elf.NewFile(bytes.NewReader(files[file]))
		if err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		name, known := architectures[program.Machine]
		if !known {
			return "", fmt.Errorf("%s is a program for %s; build it for x86_64 or aarch64", file, program.Machine)
		}
		if found != "" && found != name {
			return "", fmt.Errorf("%s is a program for %s, and another one is for %s; build all for one machine", file, name, found)
		}
		found = name
	}
	if found == "" {
		return "", fmt.Errorf("the image has no program")
	}
	return found, nil
}

// layer returns the files as an archive. Owners, times and order do not depend on the machine.
func layer(files map[string][]byte) ([]byte, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	folders := map[string]bool{".": true}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		name := strings.TrimPrefix(file, "/")
		if folder := path.Dir(name); !folders[folder] {
			folders[folder] = true
			header := tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: time.Unix(0, 0)}
			if err := writer.WriteHeader(&header); err != nil {
				return nil, err
			}
		}
		mode := int64(0o644)
		if isProgram(files[file]) {
			mode = 0o755
			if err := checkStatic(files[file]); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
		header := tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(files[file])), ModTime: time.Unix(0, 0)}
		if err := writer.WriteHeader(&header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(files[file]); err != nil {
			return nil, err
		}
	}
	return archive.Bytes(), writer.Close()
}

// assemble returns the image with one layer.
func assemble(files map[string][]byte, version, entrypoint string) (v1.Image, error) {
	machine, err := architecture(files)
	if err != nil {
		return nil, err
	}
	content, err := layer(files)
	if err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	single, err := tarball.LayerFromOpener(opener)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, single)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", machine
	config.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	if entrypoint != "" {
		config.Config.Entrypoint = []string{entrypoint}
	}
	config.Config.Labels = map[string]string{
		"org.opencontainers.image.title":    "softiov",
		"org.opencontainers.image.licenses": "Apache-2.0 OR MIT",
		"org.opencontainers.image.version":  version,
	}
	return mutate.ConfigFile(image, config)
}

// write writes the image to an archive, and returns its digest.
func write(image v1.Image, out, tag string) (string, error) {
	reference, err := name.NewTag(tag, name.StrictValidation)
	if err != nil {
		return "", err
	}
	if err := tarball.WriteToFile(out, reference, image); err != nil {
		return "", err
	}
	digest, err := image.Digest()
	return digest.String(), err
}
