// SPDX-License-Identifier: Apache-2.0

// Command fn contains all functions for the comparison of fnctl with kpt. Each function is a link to this program, and
// the name of the link selects the function. A link named docker or podman is a minimal container engine for kpt. It
// prints a version, or runs the function in the image of `docker run ... IMAGE`.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/kio/kioutil"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Annotations that old SDKs use for a resource's file and its index in the file.
const (
	legacyPath  = "config.kubernetes.io/path"
	legacyIndex = "config.kubernetes.io/index"
)

func main() {
	name := filepath.Base(os.Args[0])
	var err error
	switch {
	case name == "docker" || name == "podman":
		err = runAsDocker(os.Args[1:])
	case len(os.Args) > 1 && os.Args[1] == "--help":
		_, err = fmt.Printf("The help of %s.\n", name)
	default:
		err = callFunction(name)
	}
	if exited, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(exited.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runAsDocker implements the two docker commands that kpt calls, version and run.
func runAsDocker(args []string) error {
	switch {
	case len(args) > 0 && args[0] == "version":
		_, err := fmt.Println("99.0.0")
		return err
	case len(args) == 0 || args[0] != "run":
		return errors.New("not possible")
	}
	image, rest := args[len(args)-1], []string(nil)
	if image == "--help" {
		image, rest = args[len(args)-2], []string{image}
	}
	name, _, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	cmd := exec.Command(filepath.Join(os.Getenv("FUNCTIONS"), name), rest...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// list is a resource list, the input and output of a function.
type list struct {
	items  []*yaml.RNode
	config *yaml.RNode
	// results contains the function's results as YAML. It is empty if the function has no results.
	results string
}

// value returns a value of the function configuration, a ConfigMap.
func (l *list) value(key string) string {
	if l.config == nil {
		return ""
	}
	return l.config.GetDataMap()[key]
}

func callFunction(name string) error {
	if name == "garbage" {
		_, err := fmt.Println("segmentation fault")
		return err
	}
	source := &kio.ByteReadWriter{Reader: os.Stdin, Writer: os.Stdout, KeepReaderAnnotations: true}
	items, err := source.Read()
	if err != nil {
		return err
	}
	l := &list{items: items, config: source.FunctionConfig}
	f, ok := functions[name]
	if !ok {
		return fmt.Errorf("no function %s", name)
	}
	failure := f(l)
	if l.results != "" {
		source.Results = yaml.MustParse(l.results)
	}
	if err := source.Write(l.items); err != nil {
		return err
	}
	return failure
}

var functions = map[string]func(*list) error{
	"noop":     func(*list) error { return nil },
	"label":    labelAll,
	"name":     nameLabel,
	"order":    reorderItems,
	"count":    countItems,
	"drop":     dropItem,
	"generate": generateItem,
	"move":     moveItem,
	"wipe":     func(l *list) error { l.items = nil; return nil },
	"quote":    quoteValues,
	"warn":     func(l *list) error { l.results = warnings; return nil },
	"log":      func(*list) error { return logLine("looked at everything") },
	"fail":     func(l *list) error { l.results = warnings; return errors.New("this is why") },
	"crash":    func(*list) error { os.Exit(3); return nil },
	"spoil":    spoilOutput,
	"twice":    func(l *list) error { l.items = append(l.items, l.items[0].Copy()); return nil },
	"again":    addAgain,
}

func logLine(text string) error {
	_, err := io.WriteString(os.Stderr, text+"\n")
	return err
}

// labelAll appends the value in the function configuration to the label "seen" of each resource. The label shows the
// order in which functions ran.
func labelAll(l *list) error {
	for _, item := range l.items {
		seen := strings.TrimPrefix(item.GetLabels()["seen"]+"."+l.value("value"), ".")
		if err := item.PipeE(yaml.SetLabel("seen", seen)); err != nil {
			return err
		}
	}
	return nil
}

// nameLabel sets the label "configured" of all resources to the kind and name of the function configuration.
func nameLabel(l *list) error {
	if l.config == nil {
		return nil
	}
	for _, item := range l.items {
		if err := item.PipeE(yaml.SetLabel("configured", l.config.GetKind()+"."+l.config.GetName())); err != nil {
			return err
		}
	}
	return nil
}

// reorderItems writes the names of all resources to the resource "order". The names show the order of the input.
func reorderItems(l *list) error {
	var names []string
	for _, item := range l.items {
		names = append(names, item.GetName())
	}
	return annotateAll(l, "names", strings.Join(names, "."))
}

// countItems writes the number of resources to the resource "order".
func countItems(l *list) error { return annotateAll(l, "count", strconv.Itoa(len(l.items))) }

func annotateAll(l *list, key, value string) error {
	for _, item := range l.items {
		if item.GetName() == "order" {
			data := item.GetDataMap()
			if data == nil {
				data = map[string]string{}
			}
			data[key] = strings.TrimPrefix(data[key]+"/"+value, "/")
			item.SetDataMap(data)
		}
	}
	return nil
}

func dropItem(l *list) error {
	var kept []*yaml.RNode
	for _, item := range l.items {
		if item.GetName() != l.value("name") {
			kept = append(kept, item)
		}
	}
	l.items = kept
	return nil
}

// generateItem adds a resource. The function configuration may contain the resource's path and index annotations.
func generateItem(l *list) error {
	name := l.value("name")
	if name == "" {
		name = "generated"
	}
	item := yaml.MustParse("apiVersion: v1\nkind: Secret\nmetadata:\n  name: " + name + "\n")
	for key, annotation := range map[string]string{"path": kioutil.PathAnnotation, "index": kioutil.IndexAnnotation} {
		if value := l.value(key); value != "" {
			if err := item.PipeE(yaml.SetAnnotation(annotation, value)); err != nil {
				return err
			}
		}
	}
	l.items = append(l.items, item)
	return nil
}

// moveItem moves a resource to another file by changing its path annotations.
func moveItem(l *list) error {
	for _, item := range l.items {
		if item.GetName() != l.value("name") {
			continue
		}
		for _, annotation := range []string{kioutil.PathAnnotation, legacyPath} {
			if err := item.PipeE(yaml.SetAnnotation(annotation, l.value("path"))); err != nil {
				return err
			}
		}
	}
	return nil
}

// quoteValues writes all strings in double quotes, because functions in other languages may do so.
func quoteValues(l *list) error {
	for _, item := range l.items {
		quoteStrings(item.YNode())
	}
	return nil
}

func quoteStrings(node *yaml.Node) {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == yaml.NodeTagString {
		node.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		quoteStrings(child)
	}
}

const warnings = `
- message: looked at everything
- message: something is wrong
  severity: error
  resourceRef: {apiVersion: v1, kind: ConfigMap, name: a, namespace: ns}
  field: {path: spec.replicas, currentValue: 1, proposedValue: 2}
  file: {path: a.yaml, index: 1}
  tags: {rule: x}
`

// spoilOutput makes the output invalid by adding a resource without a name.
func spoilOutput(l *list) error {
	l.items = append(l.items, yaml.MustParse("apiVersion: v1\nkind: Secret\n"))
	return nil
}

// addAgain adds another resource to the file that contains the resource "config".
func addAgain(l *list) error {
	for _, item := range l.items {
		if item.GetName() == "config" {
			second := item.Copy()
			second.SetDataMap(map[string]string{"value": "second"})
			l.items = append(l.items, second)
			return errors.Join(second.SetName("second"),
				second.PipeE(yaml.SetAnnotation(kioutil.IndexAnnotation, "1")),
				second.PipeE(yaml.SetAnnotation(legacyIndex, "1")))
		}
	}
	return nil
}
