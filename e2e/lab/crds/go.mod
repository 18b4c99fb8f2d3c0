// Other projects' custom resource definitions, for the manifests that use them. A module of its own: nothing of it is built.
module github.com/mcsnap/mcsnap/e2e/lab/crds

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
