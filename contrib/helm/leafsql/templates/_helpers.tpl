{{- define "leafsql.name" -}}
{{- $name := contains .Chart.Name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) -}}
{{- $name | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "leafsql.token" -}}
{{- if and .Values.token (ne .Values.command "proxy") -}}yes{{- end -}}
{{- end }}

{{- define "leafsql.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
