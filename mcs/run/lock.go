// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lockName is the file in the state folder whose lock (flock(2)) the one process has that writes to the folder. The
// kernel lets go of it when the process ends, however it ends, so it is never stale; what is in it is for people.
const lockName = "writer.lock"

// InUseError says that another process writes to a state folder.
type InUseError struct {
	Dir string
	// PID is the other process, as it sees itself (in a container that is another number than outside); 0 when it
	// did not say.
	PID int
}

func (e *InUseError) Error() string {
	holder := "another process"
	if e.PID > 0 {
		holder = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("state folder %s is in use by %s; end that one, or give another folder with --state-dir", e.Dir, holder)
}

// Lock makes this process the one that writes to a state folder, until the returned function is called or the process
// ends. The error is an *InUseError when another one is. A folder in which nobody can make a file, as on a read-only
// disk, is not locked, which the log says: nothing can be written to it, and what it holds is worth serving.
func Lock(dir string, log *slog.Logger) (unlock func(), err error) {
	path := filepath.Join(dir, lockName)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC) {
		file, err = os.Open(path) // enough for the lock, not for saying who has it
	}
	if err != nil {
		log.Warn("the state folder cannot be locked; see to it that no other server has it", "dir", dir, "error", err)
		return func() {}, nil
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer file.Close() //nolint:errcheck // only read
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			log.Warn("the state folder cannot be locked; see to it that no other server has it", "dir", dir, "error", err)
			return func() {}, nil
		}
		return nil, &InUseError{Dir: dir, PID: holder(path)}
	}
	// The number need not survive anything: it is only read while this process has the lock.
	if file.Truncate(0) == nil {
		_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return func() { _ = file.Close() }, nil
}

// holder reads who has the lock.
func holder(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
