// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// field is a variable of conditions that is a text.
type field int

const (
	fieldCallerID field = iota
	fieldCallerKind
	fieldCallerAddress
	fieldName
	fieldRepository
	fieldRegistry
	fieldTag
	fieldDigest
	fieldIndexDigest
	fieldEvaluator
	fieldOperation
	fields
)

// Variables that are no texts.
const (
	variableGroups  = "caller.groups"
	variableSigners = "image.signers"
	variableBytes   = "input.bytes"
)

// variables are the names of the fields.
var variables = [fields]string{
	fieldCallerID: "caller.id", fieldCallerKind: "caller.kind", fieldCallerAddress: "caller.address",
	fieldName: "image.name", fieldRepository: "image.repository", fieldRegistry: "image.registry",
	fieldTag: "image.tag", fieldDigest: "image.digest", fieldIndexDigest: "image.indexDigest",
	fieldEvaluator: "evaluator", fieldOperation: "operation",
}

// domains are the values of the fields that have few.
var domains = map[field][]string{
	fieldCallerKind: {"", "certificate", "token"},
	fieldEvaluator:  append([]string{""}, Evaluators()...),
	fieldOperation:  {Evaluate, ListTags},
}

// values are the values of variables in one decision. They are CEL's activation too.
type values struct {
	text    [fields]string
	groups  []string
	signers []string
	bytes   int64
}

// newValues returns the values of facts.
func newValues(f Facts) *values {
	v := &values{groups: f.Caller.Groups, signers: f.signedBy(), bytes: f.InputBytes}
	repository := imagename.CanonicalRepository(f.Image.Repository)
	registry, _, _ := strings.Cut(repository, "/")
	image := f.Image
	image.Repository = repository
	if image.Digest != "" {
		image.Tag = "" // it selects nothing, and callers may write any
	}
	digest, index := f.digests()
	v.text = [fields]string{
		fieldCallerID: f.Caller.ID, fieldCallerKind: string(f.Caller.Kind), fieldCallerAddress: f.Address,
		fieldName: image.String(), fieldRepository: repository, fieldRegistry: registry,
		fieldTag: image.Tag, fieldDigest: digest, fieldIndexDigest: index,
		fieldEvaluator: f.Evaluator, fieldOperation: f.Operation,
	}
	return v
}

// ResolveName implements CEL's activation.
func (v *values) ResolveName(name string) (any, bool) {
	switch name {
	case variableGroups:
		return v.groups, true
	case variableSigners:
		return v.signers, true
	case variableBytes:
		return v.bytes, true
	}
	for i, variable := range variables {
		if variable == name {
			return v.text[i], true
		}
	}
	return nil, false
}

// Parent implements CEL's activation.
func (v *values) Parent() cel.Activation { return nil }

// newEnv returns the environment of conditions.
func newEnv() (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.Variable(variableGroups, cel.ListType(cel.StringType)),
		cel.Variable(variableSigners, cel.ListType(cel.StringType)),
		cel.Variable(variableBytes, cel.IntType),
	}
	for _, name := range variables {
		options = append(options, cel.Variable(name, cel.StringType))
	}
	return cel.NewEnv(options...)
}
