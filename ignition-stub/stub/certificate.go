// SPDX-License-Identifier: Apache-2.0

package stub

import (
	"crypto/x509"
	"errors"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
)

func parseCertificates(bundle []byte) ([]*x509.Certificate, error) {
	certificates, err := fetch.ParseCertificates(bundle)
	if input, ok := errors.AsType[*fetch.InputError](err); ok {
		return nil, &InputError{Field: input.Field, Problem: input.Problem}
	}
	return certificates, err
}
