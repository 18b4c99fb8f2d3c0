// SPDX-License-Identifier: Apache-2.0

package example

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	ign "github.com/coreos/ignition/v2/config/v3_5/types"
)

// The machine's files and units, as they lie on it. A file's name decides its mode.
//
//go:embed all:node
var node embed.FS

func ignitionConfig(n int) (*ign.Config, error) {
	config := &ign.Config{Ignition: ign.Ignition{Version: ign.MaxVersion.String()}}
	config.Passwd.Users = []ign.PasswdUser{{Name: "core", SSHAuthorizedKeys: []ign.SSHAuthorizedKey{sshKey()}}}

	config.KernelArguments.ShouldExist = []ign.KernelArgument{"mitigations=auto,nosmt"}

	files, err := read("node/files")
	if err != nil {
		return nil, err
	}
	files["etc/sysctl.d/60-generation.conf"] = bytes.ReplaceAll(files["etc/sysctl.d/60-generation.conf"], []byte("{{somaxconn}}"), strconv.AppendInt(nil, int64(1024*n), 10))
	files["etc/containers/registries.conf"] = registries()
	files["etc/containers/policy.json"] = policy()
	files["var/lib/kubelet/seccomp/cluster-default.json"] = seccomp()
	files["etc/chrony.keys"] = nil
	files["etc/mtu-probe-targets"] = probeTargets()
	if n >= 2 {
		files["etc/issue.d/40-generation.issue"] = fmt.Appendf(nil, "Generation %d.\n", n)
	}
	for _, name := range sorted(files) {
		source, mode, overwrite := dataURL(files[name]), mode(name), true
		config.Storage.Files = append(config.Storage.Files, ign.File{
			Node:          ign.Node{Path: "/" + name, Overwrite: &overwrite},
			FileEmbedded1: ign.FileEmbedded1{Contents: ign.Resource{Source: &source}, Mode: &mode},
		})
	}
	config.Systemd.Units, err = units()
	return config, err
}

// units turns the files of node/units into Ignition's units: NAME is a unit, NAME.d/X.conf a drop-in. What can be
// installed is enabled.
func units() (made []ign.Unit, err error) {
	files, err := read("node/units")
	if err != nil {
		return nil, err
	}
	byName := map[string]*ign.Unit{}
	for _, name := range sorted(files) {
		text := string(files[name])
		unitName, dropin, isDropin := strings.Cut(name, ".d/")
		unit := byName[unitName]
		if unit == nil {
			unit = &ign.Unit{Name: unitName}
			byName[unitName] = unit
		}
		if isDropin {
			unit.Dropins = append(unit.Dropins, ign.Dropin{Name: dropin, Contents: &text})
			continue
		}
		unit.Contents = &text
		if strings.Contains(text, "\n[Install]\n") {
			enabled := true
			unit.Enabled = &enabled
		}
	}
	for _, name := range sorted(byName) {
		made = append(made, *byName[name])
	}
	return made, nil
}

func read(folder string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(node, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := node.ReadFile(name)
		files[strings.TrimPrefix(name, folder+"/")] = text
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the example's %s: %w", folder, err)
	}
	return files, nil
}

func mode(name string) int {
	switch {
	case strings.Contains(name, "/bin/"), strings.Contains(name, "/sbin/"), strings.Contains(name, "dispatcher.d/"):
		return 0o755
	case name == "var/lib/kubelet/config.json", name == "etc/chrony.keys":
		return 0o600
	}
	return 0o644
}

// dataURL writes short texts readably and long ones in base64, as a rendered config mixes them too.
func dataURL(text []byte) string {
	if len(text) < 4096 {
		return "data:," + strings.ReplaceAll(url.QueryEscape(string(text)), "+", "%20")
	}
	return "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString(text)
}

// registries sends every image through two mirrors, as in a cluster that reaches no other network.
func registries() []byte {
	var text bytes.Buffer
	text.WriteString("unqualified-search-registries = [\"registry." + domain + "\"]\nshort-name-mode = \"enforcing\"\n")
	for _, project := range []string{"platform", "monitoring", "logging", "storage", "network", "builds", "tracing", "mesh", "serverless", "virtualization"} {
		for _, image := range []string{"operator", "controller", "agent", "proxy", "webhook", "must-gather", "console", "tools"} {
			fmt.Fprintf(&text, "\n[[registry]]\n  prefix = \"\"\n  location = \"registry.vendor.example/%s/%s\"\n", project, image)
			for _, mirror := range []string{"mirror-a", "mirror-b"} {
				fmt.Fprintf(&text, "\n  [[registry.mirror]]\n    location = \"%s.%s:5000/%s/%s\"\n    pull-from-mirror = \"digest-only\"\n", mirror, domain, project, image)
			}
		}
	}
	return text.Bytes()
}

func policy() []byte {
	return []byte(`{
  "default": [{"type": "insecureAcceptAnything"}],
  "transports": {
    "docker": {
      "registry.` + domain + `/platform": [{"type": "sigstoreSigned", "keyPath": "/etc/pki/containers/platform.pub", "signedIdentity": {"type": "matchRepoDigestOrExact"}}]
    },
    "docker-daemon": {"": [{"type": "insecureAcceptAnything"}]}
  }
}
`)
}

// seccomp allows what ordinary programs call and lets the rest fail.
func seccomp() []byte {
	var text bytes.Buffer
	text.WriteString("{\n  \"defaultAction\": \"SCMP_ACT_ERRNO\",\n  \"defaultErrnoRet\": 1,\n  \"architectures\": [\"SCMP_ARCH_X86_64\", \"SCMP_ARCH_AARCH64\"],\n  \"syscalls\": [\n    {\n      \"names\": [\n")
	calls := strings.Fields(`accept accept4 access alarm bind brk capget capset chdir chmod chown clock_getres clock_gettime clock_nanosleep
		clone close close_range connect copy_file_range dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd2
		execve execveat exit exit_group faccessat faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fchown fchownat fcntl fdatasync
		fgetxattr flock fork fstat fstatfs fsync ftruncate futex getcwd getdents64 getegid geteuid getgid getgroups getpeername getpgid
		getpid getppid getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday
		getuid getxattr inotify_add_watch inotify_init1 inotify_rm_watch io_getevents io_setup io_submit ioctl kill lchown link linkat
		listen lseek lstat madvise membarrier memfd_create mincore mkdir mkdirat mlock mmap mprotect mremap msync munlock munmap nanosleep
		newfstatat open openat openat2 pause pidfd_open pipe pipe2 poll ppoll prctl pread64 preadv prlimit64 pselect6 pwrite64 pwritev
		read readlink readlinkat readv recvfrom recvmmsg recvmsg rename renameat renameat2 rmdir rseq rt_sigaction rt_sigpending
		rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait sched_getaffinity sched_getparam sched_getscheduler
		sched_setaffinity sched_yield select semctl semget semop sendfile sendmmsg sendmsg sendto set_robust_list set_tid_address setgid
		setgroups setitimer setpgid setpriority setresgid setresuid setsid setsockopt setuid shmat shmctl shmdt shmget shutdown
		sigaltstack signalfd4 socket socketpair splice stat statfs statx symlink symlinkat sync sync_file_range sysinfo tee tgkill time
		timer_create timer_delete timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask
		uname unlink unlinkat utime utimensat vfork wait4 waitid write writev`)
	for i, call := range calls {
		fmt.Fprintf(&text, "        %q", call)
		if i < len(calls)-1 {
			text.WriteString(",")
		}
		text.WriteString("\n")
	}
	text.WriteString("      ],\n      \"action\": \"SCMP_ACT_ALLOW\"\n    }\n  ]\n}\n")
	return text.Bytes()
}

func probeTargets() []byte {
	var text bytes.Buffer
	for rack := 1; rack <= 12; rack++ {
		for host := 1; host <= 20; host++ {
			fmt.Fprintf(&text, "10.0.%d.%d\tnode-%02d-%02d.%s\n", rack, 10+host, rack, host, domain)
		}
	}
	return text.Bytes()
}

// sshKey is a public key whose private half anybody can compute.
func sshKey() ign.SSHAuthorizedKey {
	seed := sha256.Sum256([]byte("example ssh"))
	public := ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)
	const kind = "ssh-ed25519"
	blob := binary.BigEndian.AppendUint32(nil, uint32(len(kind)))
	blob = append(blob, kind...)
	blob = binary.BigEndian.AppendUint32(blob, uint32(len(public)))
	blob = append(blob, public...)
	return ign.SSHAuthorizedKey(kind + " " + base64.StdEncoding.EncodeToString(blob) + " core@" + domain)
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, path.Clean(name))
	}
	slices.Sort(names)
	return names
}
