// Command fetch makes the public test cases of ONNX that docs/onnx-support.md
// counts, from the package onnx of PyPI, and puts them where TestConformance
// finds them.
//
//	go run ./internal/conformance/fetch [-python PYTHON] [-to FOLDER]
//	go test ./internal/conformance -run TestConformance -v
//
// It needs a Python of version 3.10 or later with venv and pip, and the
// network. It installs one version of the package into a temporary environment,
// from wheels only, whose digests pip checks against those of the index. The
// cases of single operators are not in the wheel: the package computes them
// with numpy. Before anything is put in place, every case must be there, with a
// model and the outputs of each of its data sets. It owns no tensors, and may
// run beside other copies of itself.
package main

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/internal/conformance"
)

// packages are the Python packages that make the cases.
var packages = []string{"onnx==1.23.2", "numpy>=2", "ml_dtypes"}

//go:embed cases.py
var program []byte

func main() {
	log.SetFlags(0)
	log.SetPrefix("fetch: ")
	folder, err := conformance.Folder()
	python := flag.String("python", "python3", "the Python that makes the environment")
	to := flag.String("to", folder, "the folder for the archives")
	flag.Parse()
	if *to == "" {
		log.Fatalf("there is no cache folder (%v): name a folder with -to", err)
	}
	if err := fetch(*python, *to, conformance.Cases()); err != nil {
		log.Fatal(err)
	}
}

// fetch makes the archives with the cases in a folder.
func fetch(python, to string, cases []conformance.Case) (err error) {
	if err := os.MkdirAll(to, 0o777); err != nil {
		return err
	}
	work, err := os.MkdirTemp(to, "making-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	environment := filepath.Join(work, "python")
	fmt.Printf("installing %s\n", strings.Join(packages, ", "))
	if err := run(nil, python, "-m", "venv", environment); err != nil {
		return err
	}
	inside := filepath.Join(environment, "bin", "python")
	if runtime.GOOS == "windows" {
		inside = filepath.Join(environment, "Scripts", "python.exe")
	}
	if err := run(nil, inside, append([]string{"-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:"}, packages...)...); err != nil {
		return err
	}
	fmt.Printf("making %d cases\n", len(cases))
	var names bytes.Buffer
	for _, c := range cases {
		fmt.Fprintf(&names, "%s\t%s\n", c.Archive, c.Name)
	}
	script := filepath.Join(work, "cases.py")
	if err := os.WriteFile(script, program, 0o666); err != nil {
		return err
	}
	if err := run(&names, inside, "-W", "ignore", script, work); err != nil {
		return err
	}
	counts, err := check(work, cases)
	if err != nil {
		return err
	}
	for _, archive := range slices.Sorted(maps.Keys(counts)) {
		name := filepath.Join(to, archive+".zip")
		if err := os.Rename(filepath.Join(work, archive+".zip"), name); err != nil {
			return err
		}
		fmt.Printf("%s: %d cases\n", name, counts[archive])
	}
	return nil
}

func run(in *bytes.Buffer, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	if in != nil {
		cmd.Stdin = in
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, bytes.TrimSpace(out))
	}
	return nil
}

// check opens the archives in a folder and returns how many cases each has:
// those of the list, each with a model and, in every data set, an output.
func check(folder string, cases []conformance.Case) (map[string]int, error) {
	files := map[string]map[string]bool{}
	counts := map[string]int{}
	var faults []error
	for _, c := range cases {
		if files[c.Archive] == nil {
			list, err := filesOf(filepath.Join(folder, c.Archive+".zip"))
			if err != nil {
				return nil, err
			}
			files[c.Archive] = list
		}
		if err := checkCase(c.Name, files[c.Archive]); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", c.Archive, err))
			continue
		}
		counts[c.Archive]++
	}
	return counts, errors.Join(faults...)
}

func checkCase(name string, files map[string]bool) error {
	if !files[name+"/model.onnx"] {
		return fmt.Errorf("case %s: got no model.onnx", name)
	}
	sets := map[string]bool{} // whether they have an output
	for file := range files {
		if folder, base := path.Split(file); strings.HasPrefix(folder, name+"/test_data_set_") {
			sets[folder] = sets[folder] || base == "output_0.pb"
		}
	}
	if len(sets) == 0 {
		return fmt.Errorf("case %s: got no data set", name)
	}
	for set, whole := range sets {
		if !whole {
			return fmt.Errorf("case %s: got no output_0.pb in %s", name, set)
		}
	}
	return nil
}

func filesOf(archive string) (map[string]bool, error) {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	files := map[string]bool{}
	for _, f := range z.File {
		files[f.Name] = true
	}
	return files, nil
}
