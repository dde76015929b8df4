{{/*
What is worked out once and used everywhere: what the policy says, how many workers there are, how long things take.
Figures of the product itself stand in "pointsman.product" alone; tests hold them against its source.
*/}}
{{- define "pointsman.product" -}}
{{- dict
  "drainNoticeSeconds" 2
  "drainGraceSeconds" 10
  "messageSlackMs" 1000
  "replacementBytes" 65536
  "bodyBytes" 33554432
  "decisionMs" 2000
  "heldBytes" 536870912
  "workerBytes" 369098752
  "supervisorBytes" 134217728
  "grpcPort" 9000
  "probePort" 9903
  "adminPort" 9902
  "httpPort" 10000
  "envoyAdminPort" 9901
  | toJson -}}
{{- end -}}

{{/*
What the chart needs to know of policy.text, as JSON; {} where the policy is in a ConfigMap that is not ours. Section by
section, because Helm reads YAML 1.1, to which a question mark in a decision's message can be an error.
*/}}
{{- define "pointsman.policy" -}}
{{- $wanted := list "upstreams" "default_model" "on_failure" "observe_only" "limits" "responses" "records" "encoders" "remote_images" "trusted_metadata" "trusted_attributes" "strip_from_clients" "gateway_api_inference" -}}
{{- $sections := dict -}}
{{- $key := "" -}}
{{- range splitList "\n" .Values.policy.text -}}
{{- with regexFind "^[a-z_]+:" . -}}{{- $key = trimSuffix ":" . -}}{{- end -}}
{{- if has $key $wanted -}}{{- $_ := set $sections $key (printf "%s\n%s" (get $sections $key) .) -}}{{- end -}}
{{- end -}}
{{- $policy := dict -}}
{{- range $name, $text := $sections -}}
{{- $section := fromYaml $text -}}
{{- if hasKey $section "Error" -}}
{{- fail (printf "policy.text: %s can't be read: %s. `pointsman check` may read what Helm can't (it reads YAML 1.2); quote such texts, or give the policy as policy.existingConfigMap" $name $section.Error) -}}
{{- end -}}
{{- $policy = merge $policy $section -}}
{{- end -}}
{{- if and .Values.policy.text (not $policy.upstreams) -}}{{- fail "policy.text has no `upstreams:` at the beginning of a line; is it a policy?" -}}{{- end -}}
{{- toJson $policy -}}
{{- end -}}

{{/* bodyBytes (the larger of body_bytes and decoded_bytes), decisionMs, heldBytes, onFailure, as JSON. */}}
{{- define "pointsman.limits" -}}
{{- $product := include "pointsman.product" . | fromJson -}}
{{- $policy := include "pointsman.policy" . | fromJson -}}
{{- $said := default dict $policy.limits -}}
{{- $given := .Values.limits -}}
{{- if .Values.policy.text -}}
{{- range $key, $value := $given -}}
{{- if not (kindIs "invalid" $value) -}}{{- fail (printf "limits.%s: policy.text says it already; limits is for policy.existingConfigMap" $key) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $body := int64 (default (default $product.bodyBytes $said.body_bytes) $given.bodyBytes) -}}
{{- dict
  "bodyBytes" (max $body (int64 (default 0 $said.decoded_bytes)))
  "decisionMs" (int64 (default (default $product.decisionMs $said.decision_ms) $given.decisionMs))
  "heldBytes" (int64 (default (default $product.heldBytes $said.held_bytes) $given.heldBytes))
  "onFailure" (ternary "open" (default (default "closed" $policy.on_failure) $given.onFailure) (eq (toString (default false $policy.observe_only)) "true"))
  | toJson -}}
{{- end -}}

{{- define "pointsman.bufferBytes" -}}
{{- $limits := include "pointsman.limits" . | fromJson -}}
{{- add (int64 $limits.bodyBytes) (int64 (include "pointsman.product" . | fromJson).replacementBytes) -}}
{{- end -}}

{{- define "pointsman.messageTimeoutMs" -}}
{{- $limits := include "pointsman.limits" . | fromJson -}}
{{- add (int64 $limits.decisionMs) (int64 (include "pointsman.product" . | fromJson).messageSlackMs) -}}
{{- end -}}

{{/* Thousandths of a core of a quantity: 2, "2", "1500m". */}}
{{- define "pointsman.millicores" -}}
{{- $text := toString . -}}
{{- if hasSuffix "m" $text -}}{{- trimSuffix "m" $text | int64 -}}{{- else -}}{{- mulf (float64 $text) 1000 | int64 -}}{{- end -}}
{{- end -}}

{{/* Bytes of a quantity: 2147483648, "2Gi", "500M". */}}
{{- define "pointsman.bytes" -}}
{{- $text := toString . -}}
{{- $factor := 1 -}}
{{- $number := $text -}}
{{- range $suffix, $times := dict "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 -}}
{{- if hasSuffix $suffix $text -}}{{- $factor = $times -}}{{- $number = trimSuffix $suffix $text -}}{{- end -}}
{{- end -}}
{{- mulf (float64 $number) $factor | int64 -}}
{{- end -}}

{{- define "pointsman.workers" -}}
{{- if ne (toString .Values.workers) "auto" -}}
{{- int .Values.workers -}}
{{- else if eq .Values.mode "extproc" -}}
1
{{- else -}}
{{- max 1 (div (include "pointsman.millicores" .Values.resources.limits.cpu | int64) 1000) -}}
{{- end -}}
{{- end -}}

{{/* What the memory limit must be at least: workers, what they hold of bodies, and the process that started them. */}}
{{- define "pointsman.memoryFloor" -}}
{{- $product := include "pointsman.product" . | fromJson -}}
{{- $limits := include "pointsman.limits" . | fromJson -}}
{{- add (mul (include "pointsman.workers" . | int64) (add (int64 $product.workerBytes) (int64 $limits.heldBytes))) (int64 $product.supervisorBytes) -}}
{{- end -}}

{{/* Seconds of Pointsman's own end: not serving, what runs, a margin. */}}
{{- define "pointsman.drainSeconds" -}}
{{- $product := include "pointsman.product" . | fromJson -}}
{{- add (int $product.drainNoticeSeconds) (int $product.drainGraceSeconds) 3 -}}
{{- end -}}

{{/* Of the whole pod. A native sidecar is told to end when the containers have, so times add up. */}}
{{- define "pointsman.terminationSeconds" -}}
{{- $standalone := ternary (int .Values.drain.requestSeconds) 0 (eq .Values.mode "standalone") -}}
{{- add (int .Values.drain.endpointSeconds) $standalone (include "pointsman.drainSeconds" . | int) 5 -}}
{{- end -}}

{{/* Upstreams of the policy as JSON: {"items": [{host, port, tls}]}. */}}
{{- define "pointsman.endpoints" -}}
{{- $items := list -}}
{{- range (include "pointsman.policy" . | fromJson).upstreams -}}
{{- with .endpoint -}}
{{- $url := urlParse . -}}
{{- $tls := eq $url.scheme "https" -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" | default (ternary "443" "80" $tls) | int -}}
{{- $items = append $items (dict "host" (regexReplaceAll ":[0-9]+$" $url.host "") "port" $port) -}}
{{- end -}}
{{- end -}}
{{- dict "items" (uniq $items) | toJson -}}
{{- end -}}

{{/* Refuses values that each are sound and together are not. */}}
{{- define "pointsman.refuse" -}}
{{- $policy := .Values.policy -}}
{{- $standalone := eq .Values.mode "standalone" -}}
{{- $extproc := eq .Values.mode "extproc" -}}
{{- if and (not $policy.text) (not $policy.existingConfigMap) -}}{{- fail "a policy is needed: --set-file policy.text=policy.yaml, or policy.existingConfigMap" -}}{{- end -}}
{{- if and $policy.text $policy.existingConfigMap -}}{{- fail "policy.text and policy.existingConfigMap: give one of the two" -}}{{- end -}}
{{- if hasKey $policy.files $policy.key -}}{{- fail (printf "policy.files has %s, which is the policy's own name (policy.key)" $policy.key) -}}{{- end -}}
{{- $name := include "pointsman.fullname" . -}}
{{- if not (regexMatch "^[a-z]([a-z0-9-]*[a-z0-9])?$" $name) -}}{{- fail (printf "%s can't be a Service's name, which begins with a letter and has no dot: set fullnameOverride" $name) -}}{{- end -}}
{{- $floor := include "pointsman.memoryFloor" . | int64 -}}
{{- if lt (include "pointsman.bytes" .Values.resources.limits.memory | int64) $floor -}}
{{- fail (printf "resources.limits.memory: %s is too little for %s worker(s): they need %d MiB (352 MiB and limits.held_bytes of the policy each, 128 MiB beside them). Raise it, or lower workers or limits.held_bytes" (toString .Values.resources.limits.memory) (include "pointsman.workers" .) (div (add $floor 1048575) 1048576)) -}}
{{- end -}}
{{- if $extproc -}}
{{- if not .Values.tls.mode -}}{{- fail "mode: extproc sends whole requests over the network: set tls.mode to mutual (or server; or insecure, where a mesh encrypts)" -}}{{- end -}}
{{- if and (ne .Values.tls.mode "insecure") (not .Values.tls.secretName) (not .Values.tls.certManager.enabled) -}}{{- fail (printf "tls.mode: %s needs tls.secretName or tls.certManager.enabled" .Values.tls.mode) -}}{{- end -}}
{{- $kind := .Values.binding.kind -}}
{{- if and (ne $kind "none") (ne $kind "envoy") (gt (include "pointsman.workers" . | int) 1) -}}{{- fail (printf "workers: binding.kind: %s spreads over pods, by one port of a Service; leave workers at auto and raise replicas" $kind) -}}{{- end -}}
{{- if and (has $kind (list "envoyGateway" "istio" "gke")) (not .Values.binding.gateway) -}}{{- fail (printf "binding.kind: %s needs binding.gateway, the Gateway's name" $kind) -}}{{- end -}}
{{- if and (ne $kind "none") (default dict (include "pointsman.policy" . | fromJson).responses).checks -}}{{- fail (printf "the policy's responses.checks need a second filter, which binding.kind: %s does not make: set binding.kind: none and take both filters from `pointsman envoy`" $kind) -}}{{- end -}}
{{- range .Values.binding.routes -}}
{{- if eq (not .inferencePool) (not .service) -}}{{- fail "binding.routes: each route needs a service or an inferencePool, one of the two" -}}{{- end -}}
{{- if and .service (or (not .cluster) (not .port)) -}}{{- fail "binding.routes: a route to a service needs cluster (the policy's) and port" -}}{{- end -}}
{{- if and .inferencePool (not .model) -}}{{- fail "binding.routes: a route to an inferencePool needs model (the policy's)" -}}{{- end -}}
{{- end -}}
{{- if and (eq $kind "gke") (eq .Values.tls.mode "mutual") -}}{{- fail "binding.kind: gke: its load balancer shows no certificate to extensions; set tls.mode: server, and let networkPolicy.from name its ranges" -}}{{- end -}}
{{- else if ne .Values.binding.kind "none" -}}
{{- fail (printf "binding.kind: %s goes with mode: extproc" .Values.binding.kind) -}}
{{- end -}}
{{- if and (not $standalone) (or .Values.ingress.enabled .Values.httpRoute.enabled) -}}{{- fail "ingress and httpRoute go with mode: standalone" -}}{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}{{- fail "httpRoute.enabled needs httpRoute.parentRefs, the Gateways" -}}{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}{{- fail "ingress.enabled needs ingress.host" -}}{{- end -}}
{{- with .Values.packs -}}
{{- if and (eq .from "pvc") (not .claimName) -}}{{- fail "packs.from: pvc needs packs.claimName" -}}{{- end -}}
{{- if and (eq .from "oci") (not (contains "@sha256:" .oci.reference)) -}}{{- fail "packs.from: oci needs packs.oci.reference by digest, as in registry.example/packs@sha256:..." -}}{{- end -}}
{{- if and (eq .from "pull") (not .pull.archives) -}}{{- fail "packs.from: pull needs packs.pull.archives" -}}{{- end -}}
{{- end -}}
{{- $stored := default dict (include "pointsman.policy" . | fromJson).records -}}
{{- if and $stored.dsn_env .Values.records.dsnSecret.name (ne $stored.dsn_env .Values.records.dsnEnv) -}}{{- fail (printf "records.dsnEnv is %s, and the policy's records.dsn_env %s" .Values.records.dsnEnv $stored.dsn_env) -}}{{- end -}}
{{- if and $stored.dsn_env (not .Values.records.dsnSecret.name) (not .Values.extraEnv) (not .Values.extraEnvFrom) -}}{{- fail (printf "the policy's records.dsn_env is %s: set records.dsnSecret.name to the Secret with the connection string" $stored.dsn_env) -}}{{- end -}}
{{- if and .Values.autoscaling.enabled (lt (int .Values.autoscaling.maxReplicas) (int .Values.autoscaling.minReplicas)) -}}{{- fail "autoscaling.maxReplicas is less than autoscaling.minReplicas" -}}{{- end -}}
{{- end -}}
