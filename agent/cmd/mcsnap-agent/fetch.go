// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcsnap/mcsnap/agent/doctor"
	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/snapshot"
)

func fetcher(log *slog.Logger, deadline time.Duration) handoff.Fetch {
	return func(ctx context.Context, config *handoff.Config, token string, digest snapshot.Digest) (*snapshot.Snapshot, int, error) {
		return nil, 0, errors.New("x")
	}
}

func asker(deadline time.Duration) doctor.Ask {
	return nil
}
