{{/*
What a pod is given of Pointsman: here for the chart's own pods, and for a chart of yours that includes it:
include "pointsman.sidecar.initContainers" .Subcharts.pointsman
*/}}

{{/* Init containers up to Pointsman itself, which is a native sidecar: it is ready before others start and ends after them. */}}
{{- define "pointsman.sidecar.initContainers" -}}
{{- include "pointsman.refuse" . -}}
{{- if eq .Values.packs.from "pull" }}
- {{- include "pointsman.container.pull" . | nindent 2 }}
{{- end }}
- {{- include "pointsman.container.check" . | nindent 2 }}
{{- if eq .Values.mode "standalone" }}
- {{- include "pointsman.container.envoyConfig" . | nindent 2 }}
{{- end }}
- {{- include "pointsman.container.serve" . | nindent 2 }}
  restartPolicy: Always
{{- end -}}

{{- define "pointsman.sidecar.volumes" -}}
- name: policy
  projected:
    sources:
      - configMap: {name: {{ include "pointsman.policy.configMap" . }}}
      {{- if and .Values.policy.existingConfigMap .Values.policy.files }}
      - configMap: {name: {{ include "pointsman.fullname" . }}-policy-files}
      {{- end }}
      {{- range .Values.policy.fromConfigMaps }}
      - configMap: {name: {{ . }}}
      {{- end }}
- {name: run, emptyDir: {medium: Memory, sizeLimit: 64Mi}}
- {name: tmp, emptyDir: {sizeLimit: 256Mi}}
{{- if or (eq .Values.mode "standalone") (eq .Values.packs.from "pull") }}
- name: scripts
  configMap: {name: {{ include "pointsman.fullname" . }}-scripts}
{{- end }}
{{- if eq .Values.mode "standalone" }}
- {name: envoy-config, emptyDir: {sizeLimit: 16Mi}}
{{- end }}
{{- with include "pointsman.volumes.given" . | trim }}
{{ . }}
{{- end }}
{{- if and (eq .Values.mode "extproc") (ne .Values.tls.mode "insecure") }}
- {name: tls, secret: {secretName: {{ include "pointsman.tls.secret" . }}, defaultMode: 288}}
{{- end }}
{{- end -}}

{{/* Packs, and volumes of the values: what a policy may name lies there, so that the check needs them too. */}}
{{- define "pointsman.volumes.given" -}}
{{- with .Values.packs }}
{{- if eq .from "pvc" }}
- {name: packs, persistentVolumeClaim: {claimName: {{ .claimName }}, readOnly: true}}
{{- else if eq .from "oci" }}
- {name: packs, image: {reference: {{ .oci.reference | quote }}, pullPolicy: {{ .oci.pullPolicy }}}}
{{- else if eq .from "pull" }}
- {name: packs, emptyDir: {sizeLimit: {{ .pull.size }}}}
{{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What a container of yours mounts to reach the workers' sockets. */}}
{{- define "pointsman.sidecar.volumeMounts" -}}
- {name: run, mountPath: /run/pointsman}
{{- end -}}
