// SPDX-License-Identifier: Apache-2.0

package kptfile

// document contains all fields of a Kptfile, for decoding. Unknown fields are errors, as in kpt. Otherwise, a
// misspelled selector would be ignored, and the function would receive other resources than intended. document
// therefore also declares the fields that rendering does not use.
type document struct {
	APIVersion   string         `yaml:"apiVersion"`
	Kind         string         `yaml:"kind"`
	Metadata     metadata       `yaml:"metadata"`
	Pipeline     Pipeline       `yaml:"pipeline"`
	Upstream     upstream       `yaml:"upstream"`
	UpstreamLock upstreamLock   `yaml:"upstreamLock"`
	Info         info           `yaml:"info"`
	Inventory    inventory      `yaml:"inventory"`
	Status       status         `yaml:"status"`
	Rest         map[string]any `yaml:",inline"`
}

type metadata struct {
	Name        string            `yaml:"name"`
	Namespace   any               `yaml:"namespace"`
	Labels      any               `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

type upstream struct {
	Type           any `yaml:"type"`
	UpdateStrategy any `yaml:"updateStrategy"`
	KeepNull       any `yaml:"preserveExplicitNull"`
	Git            git `yaml:"git"`
}

type upstreamLock struct {
	Type any `yaml:"type"`
	Git  struct {
		Commit any `yaml:"commit"`
		git    `yaml:",inline"`
	} `yaml:"git"`
	Generic struct {
		StoreID         any `yaml:"storeID"`
		ResourceID      any `yaml:"resourceID"`
		ResourceVersion any `yaml:"resourceVersion"`
	} `yaml:"generic"`
}

type git struct {
	Repo      any `yaml:"repo"`
	Directory any `yaml:"directory"`
	Ref       any `yaml:"ref"`
}

type info struct {
	Site           any `yaml:"site"`
	Emails         any `yaml:"emails"`
	License        any `yaml:"license"`
	LicenseFile    any `yaml:"licenseFile"`
	Description    any `yaml:"description"`
	Keywords       any `yaml:"keywords"`
	Man            any `yaml:"man"`
	ReadinessGates []struct {
		ConditionType any `yaml:"conditionType"`
	} `yaml:"readinessGates"`
}

type inventory struct {
	Namespace   any `yaml:"namespace"`
	Name        any `yaml:"name"`
	InventoryID any `yaml:"inventoryID"`
	Labels      any `yaml:"labels"`
	Annotations any `yaml:"annotations"`
}

type status struct {
	Conditions []struct {
		Type    any `yaml:"type"`
		Status  any `yaml:"status"`
		Reason  any `yaml:"reason"`
		Message any `yaml:"message"`
		// fnctl accepts these two fields, because some releases of kpt wrote them.
		Generation any `yaml:"observedgeneration"`
		Time       any `yaml:"lasttransitiontime"`
	} `yaml:"conditions"`
	RenderStatus struct {
		Mutations    []step `yaml:"mutationSteps"`
		Validations  []step `yaml:"validationSteps"`
		ErrorSummary any    `yaml:"errorSummary"`
	} `yaml:"renderStatus"`
}

type step struct {
	Name           any `yaml:"name"`
	Image          any `yaml:"image"`
	Exec           any `yaml:"exec"`
	ExecutionError any `yaml:"executionError"`
	Stderr         any `yaml:"stderr"`
	ExitCode       any `yaml:"exitCode"`
	Results        any `yaml:"results"`
	ErrorResults   any `yaml:"errorResults"`
}
