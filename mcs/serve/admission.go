// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
)

// admission bounds how many answers are on their way at the same time.
type admission struct {
	inFlight atomic.Int64
	most     int64
}

// enter reports whether there is room; leave gives it back.
func (a *admission) enter() bool {
	if a.inFlight.Add(1) > a.most {
		a.inFlight.Add(-1)
		return false
	}
	return true
}

func (a *admission) leave() { a.inFlight.Add(-1) }

// shelf holds bodies that are read from disk when somebody asks: old snapshots, old agents. Few are in memory at a
// time, each is read once however many ask, and few are read at once.
type shelf[T any] struct {
	kept    *cache.LRUExpireCache
	reading singleflight.Group
	room    *semaphore.Weighted
}

const (
	// keepRead is how long a body that nobody asks for stays in memory.
	keepRead = 5 * time.Minute
	// readersAtOnce bounds the work on the disk. readWait is how long a read may wait for its turn and readTime how long
	// it may take; both together are well within the ten seconds that Ignition waits, and who is told 503 comes back.
	readersAtOnce = 4
	readWait      = 3 * time.Second
	readTime      = 3 * time.Second
)

func newShelf[T any](size int) *shelf[T] {
	return &shelf[T]{kept: cache.NewLRUExpireCache(size), room: semaphore.NewWeighted(readersAtOnce)}
}

// get returns what lies under key, reading it with read when it is not in memory. errBusy means: too many reads.
func (s *shelf[T]) get(ctx context.Context, key string, read func(context.Context) (T, error)) (T, error) {
	if value, ok := s.kept.Get(key); ok {
		return value.(T), nil
	}
	reading := s.reading.DoChan(key, func() (any, error) {
		// Not the client's own context: whoever asked first may leave, the others wait for the same read.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readWait)
		defer cancel()
		if s.room.Acquire(ctx, 1) != nil {
			return nil, errBusy
		}
		defer s.room.Release(1)
		value, err := read(ctx)
		if err == nil {
			s.kept.Add(key, value, keepRead)
		}
		return value, err
	})
	var none T
	patience := time.NewTimer(readWait + readTime)
	defer patience.Stop()
	select {
	case result := <-reading:
		if result.Err != nil {
			return none, result.Err
		}
		return result.Val.(T), nil
	case <-patience.C: // a disk that hangs: the read goes on, but nobody waits for it, and the room is free for others
		return none, errBusy
	case <-ctx.Done():
		return none, errBusy
	}
}
