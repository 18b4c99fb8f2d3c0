// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package apply_test

const stride = 1
