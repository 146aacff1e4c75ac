{{/* The image of a program: include "image" (list . "gateway") */}}
{{- define "image" -}}
{{- $root := index . 0 -}}
{{- printf "%s/%s:%s" (trimSuffix "/" $root.Values.image.registry) (index . 1) ($root.Values.image.tag | default $root.Chart.AppVersion) -}}
{{- end -}}

{{/* The environment of a program: the chart's own variables, and those of values.programs: include "env" (list . "gateway" (dict …)) */}}
{{- define "env" -}}
{{- $program := index (index . 0).Values.programs (index . 1) -}}
{{- range $name, $value := mergeOverwrite (index . 2) ($program.settings | default dict) }}
- name: {{ $name }}
  value: {{ ternary $value (toJson $value) (kindIs "string" $value) | quote }}
{{- end -}}
{{- end -}}

{{/* The labels of an object that belongs to a part of the system: include "labels" (list . "gateway") */}}
{{- define "labels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: function-runner
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/version: {{ $root.Values.image.tag | default $root.Chart.AppVersion | quote }}
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/part-of: function-runner
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The namespaces whose pods may call, without duplicates and without the release's own: include "callerNamespaces" . */}}
{{- define "callerNamespaces" -}}
{{- without ((.Values.callers | default dict).namespaces | default list | uniq) .Release.Namespace | join " " -}}
{{- end -}}

{{/* The peers of a network policy that may call: pods of the release's namespace and of values.callers.namespaces */}}
{{- define "callers" -}}
- podSelector: {}
{{- with include "callerNamespaces" . }}
{{- range splitList " " . }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}
