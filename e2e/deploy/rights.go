// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"slices"
	"strings"
)

// rights are all roles that may be in an overlay, with exactly what each gives: "verbs of resources in groups", and of
// which names. The server changes nothing in a cluster but for its Events (docs/decisions/no-cluster-writes.md).
var rights = map[string][]string{
	"ClusterRole mcs": {
		"get,list,watch of machineconfigs,machineconfigpools,controllerconfigs in machineconfiguration.openshift.io",
		"get,list,watch of nodes in core",
		"create,patch of events in core",
	},
	"ClusterRole mcs-token-review": {"create of tokenreviews in authentication.k8s.io"},
	"Role mcs":                     {"get,list,watch of configmaps in core named kubeconfig-data"},
	"Role mcs-scc":                 {"use of securitycontextconstraints in security.openshift.io named mcs"},
}

// bound are all bindings that may be in an overlay: the role, and the service account that gets it.
var bound = map[string]string{
	"ClusterRoleBinding mcs":                   "ClusterRole mcs to mcs",
	"ClusterRoleBinding mcs-token-review":      "ClusterRole mcs-token-review to mcs",
	"ClusterRoleBinding mcs-node-bootstrapper": "ClusterRole system:node-bootstrapper to node-bootstrapper",
	"RoleBinding mcs":                          "Role mcs to mcs",
	"RoleBinding mcs-scc":                      "Role mcs-scc to mcs",
}

func rightsRules(o Object, say sayer) {
	if strings.HasSuffix(o["kind"].(string), "Binding") {
		binding(o, say)
		return
	}
	want, known := rights[o.String()]
	if !known {
		say("no such role is meant to be; if it is, write it into e2e/deploy/rights.go")
		return
	}
	var got []string
	rules, _ := o["rules"].([]any)
	for _, rule := range rules {
		group := strings.Join(texts(rule, "apiGroups"), ",")
		if group == "" {
			group = "core"
		}
		gives := fmt.Sprintf("%s of %s in %s", strings.Join(texts(rule, "verbs"), ","), strings.Join(texts(rule, "resources"), ","), group)
		if names := texts(rule, "resourceNames"); len(names) > 0 {
			gives += " named " + strings.Join(names, ",")
		}
		if at(rule, "nonResourceURLs") != nil {
			gives += " and URLs"
		}
		got = append(got, gives)
	}
	if !slices.Equal(got, want) || o["aggregationRule"] != nil {
		say("gives %q, want %q", got, want)
	}
}

func binding(o Object, say sayer) {
	role := fmt.Sprintf("%v %v", at(o, "roleRef", "kind"), at(o, "roleRef", "name"))
	subjects, _ := o["subjects"].([]any)
	var to []string
	for _, subject := range subjects {
		if at(subject, "kind") != "ServiceAccount" {
			say("binds %v, which is no service account", at(subject, "kind"))
		}
		to = append(to, fmt.Sprint(at(subject, "name")))
	}
	if got := role + " to " + strings.Join(to, ","); got != bound[o.String()] {
		say("binds %s, want %q", got, bound[o.String()])
	}
}

func texts(value any, key string) (all []string) {
	list, _ := at(value, key).([]any)
	for _, item := range list {
		all = append(all, fmt.Sprint(item))
	}
	return all
}

// constraintsRules hold OpenShift's constraints to what the pod needs.
func constraintsRules(o Object, say sayer) {
	for key, want := range map[string]bool{
		"allowPrivilegedContainer": false, "allowHostPID": false, "allowHostIPC": false, "allowPrivilegeEscalation": false,
		"readOnlyRootFilesystem": true,
	} {
		if o[key] != want {
			say("%s is %v, want %v", key, o[key], want)
		}
	}
	for _, key := range []string{"allowedCapabilities", "defaultAddCapabilities", "users", "groups"} {
		if list := texts(o, key); len(list) > 0 {
			say("%s is %v; it gives what no role says", key, list)
		}
	}
	if !slices.Equal(texts(o, "requiredDropCapabilities"), []string{"ALL"}) {
		say("does not require that ALL capabilities are dropped")
	}
}
