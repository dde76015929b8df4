{{/* Names and labels. The longest suffix of a Job has 13 characters, and a Job's name at most 63. */}}
{{- define "pointsman.name" -}}
{{- default "pointsman" .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "pointsman.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "pointsman.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "pointsman.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "pointsman.selector" -}}
app.kubernetes.io/name: {{ include "pointsman.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: router
{{- end -}}

{{/*
What all objects share, with further ones before and after it; the first that says a label is right, and it is written once:
include "pointsman.labels" (list . component given)
*/}}
{{- define "pointsman.labels" -}}
{{- $root := index . 0 -}}
{{- with $root -}}
{{- $own := dict "helm.sh/chart" (printf "pointsman-%s" .Chart.Version) "app.kubernetes.io/name" (include "pointsman.name" .) "app.kubernetes.io/instance" .Release.Name "app.kubernetes.io/version" .Chart.AppVersion "app.kubernetes.io/managed-by" .Release.Service -}}
{{- toYaml (merge (dict) (index $ 1) $own (index $ 2) .Values.labels) -}}
{{- end -}}
{{- end -}}

{{/* name, labels and annotations of an object: include "pointsman.meta" (list . "-suffix" annotations labels) */}}
{{- define "pointsman.meta" -}}
{{- $root := index . 0 -}}
name: {{ include "pointsman.fullname" $root }}{{ index . 1 }}
namespace: {{ $root.Release.Namespace | quote }}
labels:
  {{- $given := dict }}
  {{- if gt (len .) 3 }}{{ $given = default dict (index . 3) }}{{ end }}
  {{- $component := pick $given "app.kubernetes.io/component" }}
  {{- include "pointsman.labels" (list $root $component $given) | nindent 2 }}
{{- with mergeOverwrite (deepCopy $root.Values.annotations) (default dict (index . 2)) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* repository:tag, or repository@digest: include "pointsman.image" (list image defaultTag) */}}
{{- define "pointsman.image" -}}
{{- $image := index . 0 -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default (index . 1) $image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "pointsman.own.image" -}}{{ include "pointsman.image" (list .Values.image .Chart.AppVersion) }}{{- end -}}

{{- define "pointsman.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "pointsman.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The hook's own ConfigMap has the policy before the release's has. */}}
{{- define "pointsman.policy.configMap" -}}
{{- default (printf "%s-policy" (include "pointsman.fullname" .)) .Values.policy.existingConfigMap -}}
{{- end -}}

{{- define "pointsman.policy.path" -}}/etc/pointsman/policy/{{ .Values.policy.key }}{{- end -}}

{{- define "pointsman.securityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "pointsman.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "pointsman.tls.secret" -}}
{{- default (printf "%s-tls" (include "pointsman.fullname" .)) .Values.tls.secretName -}}
{{- end -}}

{{- define "pointsman.service.host" -}}{{ include "pointsman.fullname" . }}.{{ .Release.Namespace }}.svc{{- end -}}
