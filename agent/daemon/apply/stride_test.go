// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package apply_test

// stride is how many steps of a disk lie between two that fail; under the tag e2e every one does.
const stride = 5
