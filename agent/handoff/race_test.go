// SPDX-License-Identifier: Apache-2.0

//go:build race

package handoff_test

// slowdown is what the race detector costs: figures under it only show that nothing has gone out of hand.
const slowdown = 20
