// SPDX-License-Identifier: Apache-2.0

package example

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	domain      = "lighthouse.example"
	releaseHash = "6f0a1d3c5b7e9f8240617253948a6b7c8d9eaf0b1c2d3e4f5061728394a5b6c7"
	osHash      = "b4d6f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5"
)

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: mcfgv1.GroupVersion.String(), Kind: kind}
}

// machineConfig is the rendered object of one generation. Its name ends in a digest of what it says, as a rendered
// name does, though by another recipe than the controller's.
func machineConfig(n int) (*mcfgv1.MachineConfig, error) {
	ignition, err := ignitionConfig(n)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(ignition)
	if err != nil {
		return nil, fmt.Errorf("write the Ignition config: %w", err)
	}
	arguments := []string{"systemd.unified_cgroup_hierarchy=1", "cgroup_no_v1=all", "psi=0"}
	if n >= 3 {
		arguments = append(arguments, fmt.Sprintf("audit_backlog_limit=%d", 4096*n))
	}
	spec := mcfgv1.MachineConfigSpec{
		OSImageURL:                     "registry." + domain + "/platform/os@sha256:" + osHash,
		BaseOSExtensionsContainerImage: "registry." + domain + "/platform/os-extensions@sha256:" + osHash,
		Config:                         runtime.RawExtension{Raw: raw},
		KernelArguments:                arguments,
		Extensions:                     []string{},
		KernelType:                     "default",
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("write the spec: %w", err)
	}
	digest := sha256.Sum256(text)
	controlled := true
	return &mcfgv1.MachineConfig{
		TypeMeta: typeMeta("MachineConfig"),
		ObjectMeta: metav1.ObjectMeta{
			Name: "rendered-" + Pool + "-" + hex.EncodeToString(digest[:16]),
			Annotations: map[string]string{
				"machineconfiguration.openshift.io/generated-by-controller-version": "lighthouse-1",
				"machineconfiguration.openshift.io/release-image-version":           "4.99.0",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: mcfgv1.GroupVersion.String(), Kind: "MachineConfigPool", Name: Pool,
				Controller: &controlled, BlockOwnerDeletion: &controlled,
			}},
		},
		Spec: spec,
	}, nil
}

func pool(rendered string) *mcfgv1.MachineConfigPool {
	configuration := mcfgv1.MachineConfigPoolStatusConfiguration{ObjectReference: corev1.ObjectReference{Name: rendered}}
	for _, source := range []string{"00-worker", "01-worker-container-runtime", "01-worker-kubelet", "97-worker-generated-kubelet", "99-worker-generated-registries", "99-worker-ssh"} {
		configuration.Source = append(configuration.Source, corev1.ObjectReference{
			APIVersion: mcfgv1.GroupVersion.String(), Kind: "MachineConfig", Name: source,
		})
	}
	return &mcfgv1.MachineConfigPool{
		TypeMeta: typeMeta("MachineConfigPool"),
		ObjectMeta: metav1.ObjectMeta{
			Name: Pool,
			Labels: map[string]string{
				"machineconfiguration.openshift.io/mco-built-in":           "",
				"pools.operator.machineconfiguration.openshift.io/" + Pool: "",
			},
		},
		Spec: mcfgv1.MachineConfigPoolSpec{
			Configuration:         configuration,
			MachineConfigSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"machineconfiguration.openshift.io/role": Pool}},
			NodeSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + Pool: ""}},
		},
		Status: mcfgv1.MachineConfigPoolStatus{Configuration: configuration},
	}
}

func controllerConfig() (*mcfgv1.ControllerConfig, error) {
	kubeletCA, err := authority("kube-apiserver-to-kubelet-signer", 1)
	if err != nil {
		return nil, err
	}
	rootCA, err := authority("root-ca", 2)
	if err != nil {
		return nil, err
	}
	cloudCA, err := authority("cloud-ca", 3)
	if err != nil {
		return nil, err
	}
	infra := &configv1.Infrastructure{
		TypeMeta:   metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "Infrastructure"},
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Spec:       configv1.InfrastructureSpec{PlatformSpec: configv1.PlatformSpec{Type: configv1.NonePlatformType}},
		Status: configv1.InfrastructureStatus{
			InfrastructureName:     "lighthouse-x7k2p",
			APIServerURL:           "https://api." + domain + ":6443",
			APIServerInternalURL:   "https://api-int." + domain + ":6443",
			ControlPlaneTopology:   configv1.HighlyAvailableTopologyMode,
			InfrastructureTopology: configv1.HighlyAvailableTopologyMode,
			PlatformStatus:         &configv1.PlatformStatus{Type: configv1.NonePlatformType},
		},
	}
	return &mcfgv1.ControllerConfig{
		TypeMeta: typeMeta("ControllerConfig"),
		ObjectMeta: metav1.ObjectMeta{
			Name:        "machine-config-controller",
			Annotations: map[string]string{"machineconfiguration.openshift.io/generated-by-version": "lighthouse-1"},
		},
		Spec: mcfgv1.ControllerConfigSpec{
			ClusterDNSIP:               "172.30.0.10",
			KubeAPIServerServingCAData: kubeletCA,
			RootCAData:                 rootCA,
			CloudProviderCAData:        cloudCA,
			Images:                     map[string]string{"infraImageKey": "registry." + domain + "/platform/pause@sha256:" + releaseHash},
			OSImageURL:                 "registry." + domain + "/platform/os@sha256:" + osHash,
			ReleaseImage:               "registry." + domain + "/platform/release@sha256:" + releaseHash,
			Infra:                      infra,
			DNS: &configv1.DNS{
				TypeMeta:   metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "DNS"},
				ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
				Spec:       configv1.DNSSpec{BaseDomain: domain},
			},
			IPFamilies: mcfgv1.IPFamiliesIPv4,
		},
	}, nil
}

// authority makes a CA certificate that is the same every time: its key comes from a published seed, so nothing may
// trust it.
func authority(name string, serial int64) ([]byte, error) {
	seed := sha256.Sum256([]byte("example " + name))
	key := ed25519.NewKeyFromSeed(seed[:])
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name, Organization: []string{"lighthouse example"}},
		NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2046, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the example's CA %s: %w", name, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
