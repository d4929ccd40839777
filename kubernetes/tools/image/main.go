// Command image writes an image of static programs and their licences to an archive that container runtimes load. It
// needs no container daemon. Equal files give equal bytes.
//
//	image --out softiov.tar --tag localhost/softiov:0.1.0 /softiov=FILE /licences/LICENSE-MIT=FILE ...
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

func main() {
	out := flag.String("out", "softiov.tar", "archive to write")
	tag := flag.String("tag", "", "name of the image")
	version := flag.String("version", "", "version of the programs, for the image's labels")
	modules := flag.String("modules", "", "path in the image for the licences of Go and of the Go modules in the image's programs")
	foreign := flag.String("foreign", "", "paths in the image of programs in other languages than Go, separated by commas")
	entrypoint := flag.String("entrypoint", "", "program that a container without a command starts")
	source := flag.String("source", ".", "folder of the Go module of these programs")
	flag.Parse()
	digest, err := run(flag.Args(), settings{*out, *tag, *version, *entrypoint, *modules, *source, strings.Split(*foreign, ",")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%s %s %s\n", *out, *tag, digest)
}

// settings are the command's flags.
type settings struct {
	out, tag, version, entrypoint string
	// modules is the file for the licences of Go modules, and source a folder where Go finds them.
	modules, source string
	// foreign are the paths of programs that have no Go modules.
	foreign []string
}

// run writes the image of the files in arguments of the form PATH=FILE, and returns its digest.
func run(arguments []string, s settings) (string, error) {
	files := map[string][]byte{}
	for _, argument := range arguments {
		path, file, found := strings.Cut(argument, "=")
		if !found || !strings.HasPrefix(path, "/") {
			return "", fmt.Errorf("%q is not of the form /PATH=FILE", argument)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if s.modules != "" && isProgram(content) && !slices.Contains(s.foreign, path) {
			if err := addModules(files, s.modules, file, s.source); err != nil {
				return "", fmt.Errorf("%s %w", path, err)
			}
		}
		files[path] = content
	}
	image, err := assemble(files, s.version, s.entrypoint)
	if err != nil {
		return "", err
	}
	return write(image, s.out, s.tag)
}
