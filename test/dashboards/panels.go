// SPDX-License-Identifier: Apache-2.0

package main

// panel is a graph. Its queries contain placeholders for label selectors. {@} selects the namespaces that the user has
// chosen, and {#} also selects the chosen functions. A placeholder may contain more labels, as in {@phase="run"}.
type panel struct {
	title, description, unit string
	queries                  []query
}

// stat is a panel with a single number, whose color changes at the thresholds in steps. The queries may contain the
// same placeholders as in [panel].
type stat struct {
	title, description, unit string
	queries                  []query
	steps                    []object
}

// runbooks is the URL of the directory with a page for each alert.
const runbooks = "https://github.com/krm-function-runner/function-runner/blob/main/docs/runbooks/"

// alerted maps the title of a panel to the alert about the same problem. limit is the alert's threshold in the panel's
// unit. If the panel and the alert show different values, limit is 0, and the panel shows no threshold. Tests compare
// the names of the alerts with the alert rules.
var alerted = map[string]struct {
	limit float64
	alert string
}{
	"Failures of the system":    {0.05, "FunctionRunnerEvaluationsFail"},
	"Error budget burn":         {14.4, "FunctionRunnerErrorBudgetBurns"},
	"Duration":                  {10, "FunctionRunnerEvaluationsSlow"},
	"What callers wait for now": {50, "FunctionRunnerCallersWait"},
	"Rejected":                  {0.1, "FunctionRunnerRequestsRejected"},
	"Certificates":              {3600, "FunctionRunnerCertificateExpires"},
	"Cold starts":               {0, "FunctionRunnerColdStartsFail"},
	"Retries":                   {0, "FunctionRunnerPodsBreak"},
	"Replicas":                  {0, "FunctionRunnerReplicaMissing"},
	"Ownership":                 {0, "FunctionRunnerNoOwner"},
	"Kubernetes API":            {0, "FunctionRunnerKubernetesAPIFails"},
	"Pull secret":               {0, "FunctionRunnerPullSecretStale"},
	"Issuer":                    {0, "FunctionRunnerCertificatesNotRenewed"},
	"Versions":                  {0, "FunctionRunnerProgramDown"},
	"Failures":                  {0.2, "FunctionRunnerRegistryFails"},
}

// query is a PromQL query, with a format for the names of its lines in Grafana.
type query struct{ expr, legend string }

func one(expr, legend string) []query { return []query{{expr, legend}} }

// quantiles returns queries for p50, p95 and p99 of a histogram. The argument is a metric name with its selector.
func quantiles(histogram string) []query {
	var all []query
	for _, q := range [][2]string{{"0.5", "p50"}, {"0.95", "p95"}, {"0.99", "p99"}} {
		expr := "histogram_quantile(" + q[0] + ", sum by (le) (rate(" + histogram + "[$__rate_interval])))"
		all = append(all, query{expr, q[1]})
	}
	return all
}

// mean returns a query for the mean of a histogram. The query returns a mean for each value of the label, or a single
// mean if label is empty.
func mean(histogram, selector, label, legend string) query {
	by := "sum"
	if label != "" {
		by = "sum by (" + label + ")"
	}
	part := func(suffix string) string {
		return by + " (rate(" + histogram + suffix + selector + "[$__rate_interval]))"
	}
	return query{part("_sum") + " / " + part("_count"), legend}
}

// stats are the single numbers at the top of the dashboard "overview". Each number has a title, a description, a unit,
// queries and thresholds.
var stats = []stat{
	{
		"Evaluations", "Evaluations that ended.", "reqps",
		one("sum(rate(fn_evaluations_total{@}[$__rate_interval]))", ""),
		[]object{step("blue", nil)},
	},
	{
		"System failures", "The share of evaluations that the system failed. The objective is 0.5 % in 30 days.",
		"percentunit",
		one("max(function_runner:evaluation_failures:ratio_rate5m{@})", ""),
		[]object{step("green", nil), step("orange", 0.005), step("red", 0.05)},
	},
	{
		"p95", "The duration that 19 of 20 evaluations do not exceed.", "s",
		one("histogram_quantile(0.95, sum by (le) (rate(fn_evaluation_duration_seconds_bucket{@}[$__rate_interval])))", ""),
		[]object{step("green", nil), step("orange", 5), step("red", 10)},
	},
	{
		"Waiting", "Evaluations that wait and do not run.", "short", one(`sum(fn_evaluations_active{@phase!="run"})`, ""),
		[]object{step("green", nil), step("orange", 10), step("red", 50)},
	},
	{
		"Pods ready", "The share of function pods that are ready.", "percentunit", one(
			`sum(max by (namespace, image) (fn_pods{@state="ready"})) / sum(max by (namespace, image, state) (fn_pods{@}))`, ""),
		[]object{step("red", nil), step("orange", 0.5), step("green", 0.8)},
	},
	{
		"Certificate expiry", "Time until the first certificate expires, with mutual TLS.", "s",
		one("min(fn_certificate_expiry_timestamp_seconds{@} - time())", ""),
		[]object{step("red", nil), step("orange", 3600), step("green", 4*3600)},
	},
}

// dashboards contains all dashboards. The keys are file names without extension.
var dashboards = map[string]board{
	"overview": {"Function Runner: overview", "Rate, errors and duration of evaluations, and the error budget.", []panel{
		{
			"Evaluations", "Evaluations that ended, by their code.", "reqps",
			one("sum by (code) (rate(fn_evaluations_total{@}[$__rate_interval]))", "{{code}}"),
		},
		{
			"Failures of the system", "The share of evaluations that failed although caller and function did nothing wrong.",
			"percentunit", one("function_runner:evaluation_failures:ratio_rate5m{@}", "{{namespace}}: 5 minutes"),
		},
		{
			"Error budget burn", "How fast the error budget is used: 1 uses it up in 30 days, 14.4 in two days.", "short",
			[]query{
				{"function_runner:evaluation_failures:ratio_rate1h{@} / 0.005", "{{namespace}}: 1 hour"},
				{"function_runner:evaluation_failures:ratio_rate6h{@} / 0.005", "{{namespace}}: 6 hours"},
			},
		},
		{
			"Duration", "How long callers wait: half of them, nineteen in twenty, all but one in a hundred.", "s",
			quantiles("fn_evaluation_duration_seconds_bucket{@}"),
		},
		{
			"Where the time goes", "Mean time that an evaluation spends in each phase. run is the function itself.", "s",
			[]query{mean("fn_phase_duration_seconds", "{@}", "phase", "{{phase}}")},
		},
		{
			"What callers wait for now", "Evaluations that have not ended, by the phase that they are in.", "short",
			one("sum by (phase) (fn_evaluations_active{@})", "{{phase}}"),
		},
		{
			"Functions", "The ten functions with the most evaluations.", "reqps",
			one("topk(10, sum by (image) (rate(fn_evaluations_total{@}[$__rate_interval])))", "{{image}}"),
		},
		{
			"Evaluators", "Local binaries (exec), sandboxes and pods.", "reqps",
			one("sum by (executor) (rate(fn_evaluations_total{@}[$__rate_interval]))", "{{executor}}"),
		},
		{
			"Rejected", "Requests rejected before any function ran, by reason.", "reqps",
			one("sum by (reason) (rate(fn_rejections_total{@}[$__rate_interval]))", "{{reason}}"),
		},
		{"Resource lists", "Mean size of requests and responses.", "bytes", []query{
			mean("fn_request_bytes", "{@}", "", "request"), mean("fn_response_bytes", "{@}", "", "response"),
		}},
		{
			"Memory budget", "Bytes reserved for requests and outputs.", "bytes",
			one("sum by (pod) (fn_requests_in_hand_bytes{@})", "{{pod}}"),
		},
		{
			"Queued for the memory budget", "Requests and answers that wait for it.", "short",
			one("sum by (pod) (fn_requests_queued{@})", "{{pod}}"),
		},
		{
			"Versions", "Programs by version: more than one during an upgrade.", "short",
			one("count by (version) (fn_build_info{@})", "{{version}}"),
		},
	}, nil, stats, []row{
		{"Local binaries", []panel{
			{"Local binaries", "Evaluations that run as local binaries, and evaluations queued for it.", "short", []query{
				{"sum(fn_exec_running{@})", "running"}, {"sum(fn_exec_queue_depth{@})", "queued"},
			}},
			{
				"Spare processes", "Evaluations for which a spare process was ready (hit), or a process had to be started (miss).",
				"reqps", one("sum by (outcome) (rate(fn_prefork_total{@}[$__rate_interval]))", "{{outcome}}"),
			},
		}},
		{"Result cache", []panel{
			{
				"Result cache", "Evaluations of functions whose results are remembered, by how they were answered.", "reqps",
				one("sum by (outcome) (rate(fn_result_cache_lookups_total{@}[$__rate_interval]))", "{{outcome}}"),
			},
			{
				"Remembered results", "Bytes of results that each gateway remembers.", "bytes",
				one("sum by (pod) (fn_result_cache_size_bytes{@})", "{{pod}}"),
			},
		}},
		{"Mutual TLS", []panel{
			{
				"Certificates", "Time until the first certificate of a program, and of an issuer, expires.", "s",
				one("min by (certificate) (fn_certificate_expiry_timestamp_seconds{@} - time())", "{{certificate}}"),
			},
			{
				"Identities of callers", "Requests rejected because of who sent them.", "reqps",
				[]query{
					{"sum by (port, reason) (rate(fn_callers_rejected_total{@}[$__rate_interval]))", "{{port}}: {{reason}}"},
				},
			},
		}},
	}},
	"function": {"Function Runner: one function", "What one function, or a few, do. Choose them above.", []panel{
		{
			"Evaluations", "Evaluations that ended, by their code.", "reqps",
			one("sum by (code) (rate(fn_evaluations_total{#}[$__rate_interval]))", "{{code}}"),
		},
		{
			"Duration", "How long callers wait: half of them, nineteen in twenty, all but one in a hundred.", "s",
			quantiles("fn_evaluation_duration_seconds_bucket{#}"),
		},
		{
			"Results", "Evaluations by the worst severity of their results.", "reqps",
			one("sum by (severity) (rate(fn_evaluations_total{#}[$__rate_interval]))", "{{severity}}"),
		},
		{"Slowest", "The ten functions with the longest 95th percentile.", "s", one(
			"topk(10, histogram_quantile(0.95, "+
				"sum by (le, image) (rate(fn_evaluation_duration_seconds_bucket{#}[$__rate_interval]))))",
			"{{image}}")},
		{"Pods", "Pods by state.", "short", one("max by (state) (sum without (image) (fn_pods{#}))", "{{state}}")},
		{
			"Cold starts", "Leases that waited for a new pod, by outcome.", "reqps",
			one("sum by (outcome) (rate(fn_cold_starts_total{#}[$__rate_interval]))", "{{outcome}}"),
		},
	}, nil, nil, nil},
	"cold-starts": {"Function Runner: cold starts", "What a cold start consists of, and where the time goes.", []panel{
		{
			"Cold starts", "Leases that waited for a new pod, by outcome.", "reqps",
			one("sum by (outcome) (rate(fn_cold_starts_total{#}[$__rate_interval]))", "{{outcome}}"),
		},
		{
			"By phase", "Mean time in each phase of a cold start.", "s",
			[]query{mean("fn_phase_duration_seconds", `{@phase!="run"}`, "phase", "{{phase}}")},
		},
		{
			"Pulling images", "Time in which nodes pull images.", "s",
			quantiles(`fn_phase_duration_seconds_bucket{@phase="pull"}`),
		},
		{
			"Waiting for a node", "Time until the scheduler has found a node.", "s",
			quantiles(`fn_phase_duration_seconds_bucket{@phase="schedule"}`),
		},
		{
			"Starting containers", "Time until the containers run.", "s",
			quantiles(`fn_phase_duration_seconds_bucket{@phase="start"}`),
		},
		{
			"Actions", "Time of the actions of the pod-manager on the Kubernetes API.", "s",
			[]query{mean("fn_kube_action_duration_seconds", "{@}", "action", "{{action}}")},
		},
	}, nil, nil, nil},
	"pods": {"Function Runner: pools and pods", "Function pods, the queue, and the replicas that manage them.", []panel{
		{
			"Pods", "Function pods by state, and outdated ones that serve until new pods are ready.", "short", []query{
				{"max by (state) (sum without (image) (fn_pods{@}))", "{{state}}"}, {"sum(fn_pods_outdated{@})", "outdated"},
			},
		},
		{"Queue", "Leases that were not granted yet.", "short", one("sum(fn_queue_depth{@})", "waiting")},
		{
			"Rejected leases", "By reason.", "reqps",
			one("sum by (reason) (rate(fn_lease_rejections_total{@}[$__rate_interval]))", "{{reason}}"),
		},
		{
			"Deleted pods", "By reason.", "reqps",
			one("sum by (reason) (rate(fn_pod_evictions_total{@}[$__rate_interval]))", "{{reason}}"),
		},
		{
			"Created pods", "By why they are created: leases that wait, a minimum of pods, or a new version.", "reqps",
			one("sum by (reason) (rate(fn_pod_creations_total{@}[$__rate_interval]))", "{{reason}}"),
		},
		{
			"Retries", "Evaluations that were tried again on another pod.", "reqps",
			one("sum(rate(fn_retries_total{@}[$__rate_interval]))", "retries"),
		},
		{
			"Replicas", "Living replicas of the pod-manager, as each one sees them.", "short",
			one("fn_replicas{@}", "{{pod}}"),
		},
		{
			"Ownership", "1 while a replica may own functions, with the reason.", "short",
			one("fn_replica_owning{@}", "{{pod}} {{reason}}"),
		},
		{
			"Functions by owner", "Functions that each replica owns.", "short", one("fn_functions_owned{@}", "{{pod}}"),
		},
		{
			"Takeovers", "Functions that a replica took over from others.", "reqps",
			one("rate(fn_takeovers_total{@}[$__rate_interval])", "{{pod}}"),
		},
		{
			"Silent replicas", "Replicas of other services that did not answer.", "reqps",
			one("sum by (service) (rate(fn_silent_replicas_total{@}[$__rate_interval]))", "{{service}}"),
		},
		{"Kubernetes API", "Failed attempts to list or watch, and templates that could not be used.", "reqps", []query{
			{"sum by (view) (rate(fn_kube_watch_failures_total{@}[$__rate_interval]))", "{{view}}"},
			{"sum(rate(fn_kube_template_failures_total{@}[$__rate_interval]))", "templates"},
		}},
		{
			"Memory", "Of each program. Functions that run beside it are not in it.", "bytes",
			one(`process_resident_memory_bytes{@app=~"gateway|pod-manager|image-resolver|function-runner"}`, "{{pod}}"),
		},
	}, nil, nil, []row{
		{"Private registries", []panel{
			{
				"Pull secret", "1 while it matches its file.", "short", one("min(fn_pull_secret_in_step{@})", "in step"),
			},
			{
				"Pull secret writes", "By outcome.", "reqps",
				one("sum by (outcome) (rate(fn_pull_secret_writes_total{@}[$__rate_interval]))", "{{outcome}}"),
			},
		}},
		{"Mutual TLS", []panel{
			{"Issuer", "1 while all certificates are up to date, and while new pods get certificates.", "short", []query{
				{"min(fn_issuer_in_step{@})", "in step"}, {"min(fn_pods_certified{@})", "new pods have certificates"},
			}},
			{
				"Issued certificates", "By Secret.", "reqps",
				one("sum by (secret) (rate(fn_issuer_certificates_total{@}[$__rate_interval]))", "{{secret}}"),
			},
		}},
	}},
	"registries": {"Function Runner: registries", "Requests to registries and the cache of their answers.", []panel{
		{
			"Requests", "By registry and answer.", "reqps",
			one("sum by (registry, code) (rate(fn_registry_requests_total{@}[$__rate_interval]))", "{{registry}} {{code}}"),
		},
		{
			"Failures", "The share of requests without a useful answer, as the alert counts them.", "percentunit",
			one("function_runner:registry_failures:ratio_rate10m{@}", "{{registry}}"),
		},
		{
			"By purpose", "What the requests are for.", "reqps",
			one("sum by (op) (rate(fn_registry_requests_total{@}[$__rate_interval]))", "{{op}}"),
		},
		{
			"Answers", "From the cache (hit), refreshed before their end (renewal), or fetched while callers waited (miss).",
			"reqps", one("sum by (source) (rate(fn_resolver_answers_total{@}[$__rate_interval]))", "{{source}}"),
		},
		{
			"Stale answers", "Old tags and images that were used because the image-resolver did not answer.", "reqps",
			one("sum by (kind) (rate(fn_stale_answers_total{@}[$__rate_interval]))", "{{kind}}"),
		},
		{
			"Moved tags", "Tags that moved to another image in the last hour.", "short",
			one("sum(increase(fn_resolver_tag_moves_total{@}[1h]))", "moved tags"),
		},
		{
			"Cache", "Size of the cache of answers.", "bytes", one("sum by (pod) (fn_resolver_cache_size_bytes{@})", "{{pod}}"),
		},
	}, nil, nil, nil},
	"traces": {
		"Function Runner: traces", "Single evaluations: from a point in a graph to its trace, and to the lines of its log.",
		[]panel{
			{
				"Durations with traces", "The points are evaluations with a trace: choose one, and follow its link.", "s",
				quantiles("fn_evaluation_duration_seconds_bucket{#}"),
			},
			{
				"Phases with traces", "The slowest one in twenty of each phase, with points that have a trace.", "s", one(
					"histogram_quantile(0.95, sum by (le, phase) (rate(fn_phase_duration_seconds_bucket{@}[$__rate_interval])))",
					"{{phase}}"),
			},
			{
				"Evaluations", "Evaluations that ended, by their code.", "reqps",
				one("sum by (code) (rate(fn_evaluations_total{#}[$__rate_interval]))", "{{code}}"),
			},
		},
		searches, nil, nil,
	},
}
