// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsnap/mcsnap/mcs/specver"
)

// serving holds the flags that every serving command has.
type serving struct {
	stateDir, metricsListen                   string
	listen, plainListen, externalURLs         []string
	devTLS                                    bool
	devTLSNames                               []string
	tlsCert, tlsKey, tlsCA, tlsMin            string
	tlsSuites                                 []string
	agents                                    []string
	defaultSpec, unknownPool, unauthenticated string
	tokenFile, gate                           string
	allow, deny                               []string
	accessLog, compatContent                  bool
	maxInFlight, maxConnections               int
	headerTimeout, idleTimeout, stall, drain  time.Duration
	logFormat, logLevel                       string
}

func (s *serving) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.stateDir, "state-dir", "/var/lib/mcs", "folder for snapshots, agents and --dev-tls's certificates; it holds secrets")
	f.StringArrayVar(&s.listen, "listen", []string{":22623"}, "address for TLS, repeatable; no host means every address, IPv4 and IPv6")
	f.StringArrayVar(&s.plainListen, "listen-plain", nil, "address without TLS, repeatable; OpenShift's is :22624")
	f.StringVar(&s.metricsListen, "metrics-listen", "127.0.0.1:9623", "address for /metrics, \"\" for none")
	f.StringArrayVar(&s.externalURLs, "external-url", nil, "how nodes reach this server, https://host:port; repeatable, agents are fetched from the first")

	f.BoolVar(&s.devTLS, "dev-tls", false, "make a CA and a certificate in the state folder")
	f.StringArrayVar(&s.devTLSNames, "dev-tls-san", nil, "another name or address for --dev-tls's certificate, repeatable (10.0.2.2: the host, seen from QEMU)")
	f.StringVar(&s.tlsCert, "tls-cert", "", "certificate, PEM with its chain; taken up again when it changes together with the key")
	f.StringVar(&s.tlsKey, "tls-key", "", "the certificate's key, PEM")
	f.StringVar(&s.tlsCA, "tls-ca", "", "what verifies --tls-cert, PEM, for the agent on the node; without it the node's own authorities do")
	f.StringVar(&s.tlsMin, "tls-min-version", "1.2", "1.2 or 1.3; 1.3 locks out the probes of some load balancers")
	f.StringSliceVar(&s.tlsSuites, "tls-cipher-suites", nil, "suites for TLS 1.2, Go's names, comma-separated; empty means Go's choice")

	f.StringArrayVar(&s.agents, "agent", nil, "agent to hand out, ARCH=FILE (amd64=/usr/local/bin/mcsnap-agent), repeatable; none: the OS image brings it")
	f.BoolVar(&s.compatContent, "compat-content-file", false, "also write /etc/mcs-machine-config-content.json on nodes, for tools that read it")
	f.StringVar(&s.defaultSpec, "default-spec", "", "Ignition version for clients that name none, such as 2.2.0 (OpenShift's); empty means the config's own")
	f.StringVar(&s.unknownPool, "unknown-pool", "retry", "retry: 503, the pool may be made; reject: 404, which ends the boot")

	f.StringVar(&s.tokenFile, "token-file", "", "ask for one of the bearer tokens in this file, one a line, until=TIME may follow; taken up again when it changes")
	f.StringSliceVar(&s.allow, "allow-cidr", nil, "only these addresses may have configs, comma-separated")
	f.StringSliceVar(&s.deny, "deny-cidr", nil, "these addresses may not have configs, comma-separated; wins over --allow-cidr")
	f.StringVar(&s.gate, "gate", "enforce", "enforce the rules on tokens and addresses, or only log what they would refuse")
	f.StringVar(&s.unauthenticated, "unauthenticated", "retry", "what the gate refuses: retry with 503, or reject with 401 and 403, which ends the boot")

	f.IntVar(&s.maxInFlight, "max-in-flight", 0, "requests answered at the same time, more get 503 at once (default 2048)")
	f.IntVar(&s.maxConnections, "max-connections", 0, "open connections, more are closed at once (default 8192)")
	f.DurationVar(&s.headerTimeout, "header-timeout", 0, "for TLS and a request's header (default 5s)")
	f.DurationVar(&s.idleTimeout, "idle-timeout", 0, "for a connection without a request (default 30s)")
	f.DurationVar(&s.stall, "stall-timeout", 0, "for a client that takes nothing of a body (default 1m)")
	f.DurationVar(&s.drain, "drain-timeout", 0, "for bodies on their way when the server ends (default 1m)")

	f.BoolVar(&s.accessLog, "access-log", true, "one line per request")
	f.StringVar(&s.logFormat, "log-format", "text", "text or json")
	f.StringVar(&s.logLevel, "log-level", "info", "debug, info, warn or error")
	complete(cmd)
}

// complete offers the words that a flag takes, in the shell.
func complete(cmd *cobra.Command) {
	versions := []string{}
	for _, v := range specver.All {
		versions = append(versions, v.String())
	}
	for flag, words := range map[string][]string{
		"default-spec": versions, "tls-min-version": {"1.2", "1.3"},
		"unknown-pool": {"retry", "reject"}, "unauthenticated": {"retry", "reject"}, "gate": {"enforce", "log"},
		"log-format": {"text", "json"}, "log-level": {"debug", "info", "warn", "error"},
	} {
		if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag is registered above
		}
	}
}
