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
  value: {{ toString $value | quote }}
{{- end -}}
{{- end -}}
