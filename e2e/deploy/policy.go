// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// byDigest is an image that stays what it is.
var byDigest = regexp.MustCompile(`^[^@]+@sha256:[0-9a-f]{64}$`)

// Policy returns what of a rendered overlay breaks the rules.
func Policy(objects []Object) (faults []string) {
	served := 0
	for _, o := range objects {
		say := func(format string, args ...any) {
			faults = append(faults, o.String()+": "+fmt.Sprintf(format, args...))
		}
		switch o["kind"] {
		case "DaemonSet":
			var set appsv1.DaemonSet
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o, &set, true); err != nil {
				say("%v", err)
				continue
			}
			podRules(set.Spec.Template.Spec, say)
			if !settingsOf(objects, set.Spec.Template.Spec, say) {
				say("mounts no config.yaml of a ConfigMap that is in the overlay")
			}
			served++
		case "Deployment", "StatefulSet", "Pod", "Job", "CronJob":
			say("no rule here judges such an object; add one")
		case "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding":
			rightsRules(o, say)
		case "Secret":
			if o["data"] != nil || o["stringData"] != nil {
				say("holds a secret; a manifest is read by many")
			}
		case "SecurityContextConstraints":
			constraintsRules(o, say)
		}
	}
	if served != 1 {
		faults = append(faults, fmt.Sprintf("%d servers in the overlay; want one DaemonSet", served))
	}
	return faults
}

type sayer func(format string, args ...any)

// podRules hold a pod to what the restricted level of Pod Security asks for, but for what the server cannot do without:
// the host's network, one port and one folder of it.
func podRules(pod corev1.PodSpec, say sayer) {
	if pod.HostPID || pod.HostIPC {
		say("shares the host's processes")
	}
	if !pod.HostNetwork {
		say("is not on the host's network, where machines that boot ask")
	}
	if pod.PriorityClassName == "" {
		say("has no priority class, so it is evicted before others")
	}
	if pod.TerminationGracePeriodSeconds == nil || *pod.TerminationGracePeriodSeconds <= 60 {
		say("terminationGracePeriodSeconds is not above --drain-timeout, a minute: bodies are cut short")
	}
	if pod.SecurityContext == nil || pod.SecurityContext.SeccompProfile == nil || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		say("seccompProfile is not RuntimeDefault")
	}
	for _, volume := range pod.Volumes {
		if volume.HostPath != nil && volume.HostPath.Path != "/var/lib/mcs" {
			say("mounts the host's %s; only /var/lib/mcs is the server's", volume.HostPath.Path)
		}
		if volume.Secret != nil && (volume.Secret.DefaultMode == nil || *volume.Secret.DefaultMode != 0o440) {
			say("volume %s: the secret's mode is not 0440", volume.Name)
		}
	}
	for _, c := range pod.InitContainers {
		// The one that hands the folder over is root, without any capability.
		containerRules(pod, c, c.Name != "state", say)
		if len(c.Ports) > 0 {
			say("container %s: has ports", c.Name)
		}
	}
	for _, c := range pod.Containers {
		containerRules(pod, c, true, say)
		probeRules(c, say)
		for _, port := range c.Ports {
			if port.HostPort != port.ContainerPort || port.HostPort < 1024 {
				say("container %s: port %d: want the host's same port, above 1023", c.Name, port.ContainerPort)
			}
		}
		if served := slices.DeleteFunc(slices.Clone(c.Ports), isMetrics(c)); len(served) != 1 {
			say("container %s: %d ports beside that of metrics, want one", c.Name, len(served))
		}
	}
}

// isMetrics tells the port that the container's environment puts metrics on.
func isMetrics(c corev1.Container) func(corev1.ContainerPort) bool {
	return func(port corev1.ContainerPort) bool {
		return port.Name == "metrics" && slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
			return e.Name == "MCS_SERVE_METRICS_LISTEN" && e.Value == fmt.Sprintf(":%d", port.HostPort)
		})
	}
}

func containerRules(pod corev1.PodSpec, c corev1.Container, nonRoot bool, say sayer) {
	complain := func(format string, args ...any) { say("container "+c.Name+": "+format, args...) }
	if !byDigest.MatchString(c.Image) {
		complain("image %s is not named by its digest", c.Image)
	}
	if c.Resources.Requests.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
		complain("requests for CPU and memory and a limit for memory are not all there")
	}
	if !c.Resources.Limits.Cpu().IsZero() {
		complain("has a limit for the CPU, which slows down a rack that boots at once")
	}
	s := c.SecurityContext
	if s == nil {
		complain("has no securityContext")
		return
	}
	if s.Privileged != nil && *s.Privileged {
		complain("is privileged")
	}
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		complain("allowPrivilegeEscalation is not false")
	}
	if s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
		complain("readOnlyRootFilesystem is not true")
	}
	if s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		complain("does not drop ALL capabilities")
	}
	if s.Capabilities != nil && len(s.Capabilities.Add) > 0 {
		complain("adds capabilities %v", s.Capabilities.Add)
	}
	if s.SeccompProfile != nil && s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		complain("seccompProfile is not RuntimeDefault")
	}
	asUser, asNonRoot := s.RunAsUser, s.RunAsNonRoot
	if pod.SecurityContext != nil && asUser == nil {
		asUser = pod.SecurityContext.RunAsUser
	}
	if pod.SecurityContext != nil && asNonRoot == nil {
		asNonRoot = pod.SecurityContext.RunAsNonRoot
	}
	if nonRoot && (asNonRoot == nil || !*asNonRoot || asUser == nil || *asUser == 0) {
		complain("may run as root")
	}
}

// probeRules see to it that a restart is for a server that does not answer, and readiness for one that has nothing to give.
func probeRules(c corev1.Container, say sayer) {
	for name, probe := range map[string]*corev1.Probe{"liveness": c.LivenessProbe, "readiness": c.ReadinessProbe, "startup": c.StartupProbe} {
		want := "/healthz"
		if name == "readiness" {
			want = "/readyz"
		}
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != want || probe.HTTPGet.Scheme != corev1.URISchemeHTTPS || probe.HTTPGet.Port.StrVal != "https" {
			say("container %s: the %s probe does not ask https for %s", c.Name, name, want)
		}
	}
}

// settingsOf looks at the config.yaml that the pod mounts; false when there is none.
func settingsOf(objects []Object, pod corev1.PodSpec, say sayer) bool {
	for _, volume := range pod.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		for _, o := range objects {
			text, has := at(o, "data", "config.yaml").(string)
			if o["kind"] != "ConfigMap" || at(o, "metadata", "name") != volume.ConfigMap.Name || !has {
				continue
			}
			var settings Object
			if err := yaml.Unmarshal([]byte(text), &settings); err != nil {
				say("config.yaml: %v", err)
				return true
			}
			allowed, _ := at(settings, "serve", "allow-cidr").([]any)
			if len(allowed) == 0 {
				say("config.yaml: serve.allow-cidr is empty; nothing else shields the port")
			}
			for _, text := range allowed {
				if prefix, err := netip.ParsePrefix(fmt.Sprint(text)); err != nil || prefix.Bits() == 0 {
					say("config.yaml: serve.allow-cidr %v: no range, or everybody", text)
				}
			}
			portRules(settings, pod, say)
			return true
		}
	}
	return false
}

// portRules see to it that the server listens where the pod says.
func portRules(settings Object, pod corev1.PodSpec, say sayer) {
	listen, given := at(settings, "serve", "listen").([]any)
	if !given {
		listen = []any{":22623"}
	}
	for _, c := range pod.Containers {
		for _, port := range slices.DeleteFunc(slices.Clone(c.Ports), isMetrics(c)) {
			if len(listen) != 1 || !strings.HasSuffix(fmt.Sprint(listen[0]), fmt.Sprintf(":%d", port.HostPort)) {
				say("config.yaml: serve.listen is %v, the pod's port is %d", listen, port.HostPort)
			}
		}
	}
	for _, key := range []string{"listen-plain", "dev-tls"} {
		if at(settings, "serve", key) != nil {
			say("config.yaml: serve.%s is for trying things", key)
		}
	}
}
