// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// mainTest stands in for a test in processes that are none.
type mainTest struct{ testing.TB }

func (mainTest) Context() context.Context { return context.Background() }
func (mainTest) Helper()                  {}
func (mainTest) Fatal(args ...any)        { fmt.Fprintln(os.Stderr, args...); os.Exit(1) }
