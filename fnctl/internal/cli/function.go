// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/krm-function-runner/function-runner/fnctl/internal/complete"
	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

// oneFunction holds the flags that describe the function of fnctl eval.
type oneFunction struct {
	kptfile.Function

	configFile  string
	environment []string
	match       kptfile.Selector
	exclude     kptfile.Selector
	save        bool
	kind        string
	data        map[string]string
}

func (f *oneFunction) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.Image, "image", "i", "", "the function's image")
	flags.StringVar(&f.Tag, "tag", "", "tag or version constraint that replaces the image's tag")
	flags.StringVar(&f.Exec, "exec", "", "run this program of your machine, with its arguments, instead of an image")
	flags.StringArrayVarP(&f.environment, "env", "e", nil, "variable of the function with --exec or --local, KEY=VALUE, "+
		"or KEY for your own value; may be repeated")
	flags.StringVar(&f.configFile, "fn-config", "", "file with the function's configuration")
	flags.BoolVarP(&f.save, "save", "s", false, "add the function to the Kptfile, so that render runs it")
	flags.StringVarP(&f.kind, "type", "t", "", "with --save: mutator or validator")
	registerSelector(flags, &f.match, "match", "run the function on resources with this")
	registerSelector(flags, &f.exclude, "exclude", "do not run the function on resources with this")
	_ = cmd.RegisterFlagCompletionFunc("image", complete.Images)
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions([]string{"mutator", "validator"},
		cobra.ShellCompDirectiveNoFileComp))
}

func registerSelector(flags *pflag.FlagSet, s *kptfile.Selector, name, what string) {
	flags.StringVar(&s.APIVersion, name+"-api-version", "", what+" apiVersion")
	flags.StringVar(&s.Kind, name+"-kind", "", what+" kind")
	flags.StringVar(&s.Name, name+"-name", "", what+" name")
	flags.StringVar(&s.Namespace, name+"-namespace", "", what+" namespace")
	flags.Var(pairs{&s.Annotations}, name+"-annotations", what+" annotation, KEY=VALUE; may be repeated")
	flags.Var(pairs{&s.Labels}, name+"-labels", what+" label, KEY=VALUE; may be repeated")
}

// check rejects contradictory flags of fnctl eval, and stores the function's selectors. The argument where is the
// directory or file to process, or "-" for standard input.
func (f *oneFunction) check(where string, pairs []string, local bool) error {
	switch {
	case f.Image == "" && f.Exec == "":
		return errors.New("needs --image or --exec")
	case f.Image != "" && f.Exec != "":
		return errors.New("takes --image or --exec, not both")
	case f.Exec == "" && !local && len(f.environment) > 0:
		return errors.New("takes --env with --exec or --local only: functions in a runner have the environment of their " +
			"image and of their FunctionConfig")
	case f.configFile != "" && len(pairs) > 0:
		return errors.New("takes --fn-config or key=value pairs, not both")
	case f.save && where == "-":
		return errors.New("takes --save with a package only, not with standard input")
	case f.save && f.kind != "mutator" && f.kind != "validator":
		return fmt.Errorf("needs --type mutator or --type validator with --save, got %q", f.kind)
	}
	if !f.match.IsEmpty() {
		f.Selectors = []kptfile.Selector{f.match}
	}
	if !f.exclude.IsEmpty() {
		f.Exclude = []kptfile.Selector{f.exclude}
	}
	return nil
}

// config returns the configuration from --fn-config or key=value arguments. It is nil if the user gave neither.
func (f *oneFunction) config(where string, pairs []string) (*yaml.RNode, error) {
	switch {
	case f.configFile != "":
		return readConfig(f.configFile, where)
	case len(pairs) > 0:
		config, data, err := pairsConfig(pairs)
		f.data = data
		return config, err
	}
	return nil, nil
}

// withoutConfig separates the function's configuration from its input. The result configs contains the resources in the
// file of --fn-config, and others contains all other resources. If the file is outside of dir, configs is empty.
func (f *oneFunction) withoutConfig(dir string, resources []*yaml.RNode) (others, configs []*yaml.RNode) {
	file, err := relativePath(dir, f.configFile)
	if f.configFile == "" || err != nil {
		return resources, nil
	}
	for _, r := range resources {
		if pkgtree.FileInTree(r) == file {
			configs = append(configs, r)
		} else {
			others = append(others, r)
		}
	}
	return others, configs
}

// relativePath returns a file's path relative to dir, with slashes.
func relativePath(dir, file string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if file, err = filepath.Abs(file); err != nil {
		return "", err
	}
	file, err = filepath.Rel(absolute, file)
	return filepath.ToSlash(file), err
}

// saveTo adds the function to the package's Kptfile, and returns a message for the user. It prepends prefix to the
// name of an image without a slash.
func (f *oneFunction) saveTo(root *yaml.RNode, dir, prefix string) (string, error) {
	saved := f.Function
	saved.ConfigMap = f.data
	saved.Image = kptfile.ImageName(pipeline.Options{ImagePrefix: prefix}.FullName(saved.Image), "")
	if f.configFile != "" {
		file, err := relativePath(dir, f.configFile)
		if err != nil || !filepath.IsLocal(filepath.FromSlash(file)) {
			return "", fmt.Errorf("--save: --fn-config %s must be inside of the package", f.configFile)
		}
		saved.ConfigPath = file
	}
	replaced, err := kptfile.Save(root, f.kind+"s", saved)
	if replaced {
		return fmt.Sprintf("Updated %s as a %s in the Kptfile", saved.Title(), f.kind), err
	}
	return fmt.Sprintf("Added %s as a %s to the Kptfile", saved.Title(), f.kind), err
}

// pairs is a flag of the form KEY=VALUE that may be repeated. It stores the values in a map.
type pairs struct{ values *map[string]string }

func (p pairs) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return fmt.Errorf("must be KEY=VALUE, got %q", text)
	}
	if *p.values == nil {
		*p.values = map[string]string{}
	}
	(*p.values)[key] = value
	return nil
}

func (p pairs) String() string { return "" }
func (p pairs) Type() string   { return "KEY=VALUE" }

// pairsConfig returns a function's configuration from arguments such as namespace=shop, and the values as a map.
// The configuration is a ConfigMap unless the first argument names another kind.
func pairsConfig(args []string) (*yaml.RNode, map[string]string, error) {
	config, err := pipeline.ConfigMap(nil)
	if err != nil {
		return nil, nil, err
	}
	values := map[string]string{}
	if !strings.Contains(args[0], "=") {
		if err := config.PipeE(yaml.SetField("kind", yaml.NewScalarRNode(args[0]))); err != nil {
			return nil, nil, err
		}
		args = args[1:]
	}
	data := config.Field("data").Value
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			return nil, nil, fmt.Errorf("takes arguments after -- as key=value, got %q", arg)
		}
		if err := data.PipeE(yaml.SetField(key, yaml.NewStringRNode(value))); err != nil {
			return nil, nil, err
		}
		values[key] = value
	}
	return config, values, nil
}

// readConfig returns the configuration of a function from a file. If the file is inside the package in
// dir, it must not be a link that leaves the package, because the package may be from an untrusted source.
func readConfig(file, dir string) (*yaml.RNode, error) {
	read := os.ReadFile
	if inside, err := relativePath(dir, file); err == nil && filepath.IsLocal(filepath.FromSlash(inside)) {
		read = func(string) ([]byte, error) { return pkgtree.ReadInside(dir, inside) }
	}
	data, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("read --fn-config: %w", err)
	}
	config, err := pkgtree.ReadConfig(file, data)
	if err != nil {
		return nil, fmt.Errorf("read --fn-config: %w", err)
	}
	for _, field := range []struct{ name, value string }{
		{"apiVersion", config.GetApiVersion()}, {"kind", config.GetKind()}, {"metadata.name", config.GetName()},
	} {
		if field.value == "" {
			return nil, fmt.Errorf("read --fn-config: %s has no %s", file, field.name)
		}
	}
	return config, nil
}
