// SPDX-License-Identifier: Apache-2.0

package main

// Filters for spans (in TraceQL) and log lines (in LogQL). $namespace and $function are variables of the dashboard.
// Spans contain full image names, so the pattern permits a registry before $function and a digest after it.
const (
	spanSelector = `resource.service.name=~"gateway|function-runner" && resource.k8s.namespace.name=~"$namespace"` +
		` && name="fn.evaluate" && span.container.image.name=~"(.*/)?($function)(@.*)?"`
	lineSelector = `{namespace=~"$namespace", app=~"gateway|pod-manager|image-resolver|function-runner"}`
)

// search is a panel that lists traces from Tempo or Jaeger, or log lines from Loki.
type search struct {
	title, description string
	// source is the type of the data source, and also the name of its variable. kind is Grafana's type of the panel.
	source, kind string
	// query contains the fields of Grafana's "target" object for this data source, including the query itself.
	query object
}

func traceQL(query string) object {
	return object{"queryType": "traceql", "query": query, "limit": 20, "tableType": "traces", "filters": []object{}}
}

// jaeger returns a query for Jaeger. The user enters the tags to search for, because Jaeger cannot match patterns.
func jaeger(tags string) object {
	return object{
		"queryType": "search", "service": "$service", "operation": "fn.evaluate", "limit": 20, "tags": "$tags" + tags,
	}
}

// searches are the panels of the dashboard "traces" that list traces and log lines.
var searches = []search{
	{
		"Failed evaluations", "Traces of evaluations that ended with an error.", "tempo", "table",
		traceQL("{" + spanSelector + " && status=error} | select(span.fn.code, span.container.image.name)"),
	},
	{
		"Slow evaluations", "Traces of evaluations that took longer than a second.", "tempo", "table",
		traceQL("{" + spanSelector + " && duration>1s} | select(span.fn.evaluator, span.container.image.name)"),
	},
	{
		"Cold starts", "Traces of evaluations that waited for a new pod.", "tempo", "table",
		traceQL("{" + spanSelector + " && span.faas.coldstart=true} | select(span.k8s.pod.name)"),
	},
	{
		"Evaluations in Jaeger", "Traces with the tags that are given above.", "jaeger", "table", jaeger(""),
	},
	{
		"Failed evaluations in Jaeger", "Those of them that ended with an error.", "jaeger", "table", jaeger(" error=true"),
	},
	{
		"Lines of traces", "Log lines that belong to a trace, with a link to it.", "loki", "logs",
		object{"expr": lineSelector + ` |= "trace_id"`, "queryType": "range", "maxLines": 100},
	},
}

func (s search) json() object {
	datasource := object{"type": s.source, "uid": "${" + s.source + "}"}
	target := object{"refId": "A", "datasource": datasource}
	for key, value := range s.query {
		target[key] = value
	}
	return object{
		"type": s.kind, "title": s.title, "description": s.description, "datasource": datasource,
		"targets":     []object{target},
		"fieldConfig": object{"defaults": object{}, "overrides": []object{}},
		"options":     searchOptions[s.kind],
	}
}

// searchOptions contains the display options of panels with traces or log lines. The keys are Grafana's panel types.
var searchOptions = map[string]object{
	"table": {"showHeader": true, "frameIndex": 0},
	"logs": {
		"showTime": true, "enableLogDetails": true, "sortOrder": "Descending", "showLabels": false,
		"showCommonLabels": false, "wrapLogMessage": false, "prettifyLogMessage": false, "showLogContextToggle": false,
		"dedupStrategy": "none",
	},
}

// searchVariables returns the dashboard variables that panels of traces and logs use, such as their data sources.
func searchVariables() []object {
	source := func(kind, label string) object {
		return object{"name": kind, "type": "datasource", "query": kind, "label": label}
	}
	return []object{
		source("tempo", "Tempo"), source("jaeger", "Jaeger"), source("loki", "Loki"),
		{
			"name": "service", "type": "custom", "label": "Service in Jaeger", "query": "gateway,function-runner",
			"current": object{"text": "gateway", "value": "gateway"},
			"options": []object{
				{"text": "gateway", "value": "gateway", "selected": true},
				{"text": "function-runner", "value": "function-runner", "selected": false},
			},
		},
		{
			"name": "tags", "type": "textbox", "label": "Tags for Jaeger", "query": "k8s.namespace.name=porch-system",
			"current": object{
				"text": "k8s.namespace.name=porch-system", "value": "k8s.namespace.name=porch-system",
			},
		},
	}
}
