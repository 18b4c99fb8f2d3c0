// SPDX-License-Identifier: Apache-2.0

//go:build !race

package handoff_test

const slowdown = 1
