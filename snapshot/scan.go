// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxSafeInteger is the largest integer that every JSON reader agrees on (RFC 7493, section 2.2).
const maxSafeInteger = 1<<53 - 1

// scan reads all of doc and refuses what canonicalization would change in silence: duplicate keys, invalid UTF-8 or
// lone surrogates, and numbers that a float64 cannot hold. prefix is prepended to the fields in errors.
func scan(doc []byte) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
	if dec.PeekKind() != jsontext.KindBeginObject {
		if _, err := dec.ReadToken(); err != nil {
			return &NotJSONError{Cause: syntaxOf(err)}
		}
		return &NotJSONError{Cause: errors.New("the document is not an object")}
	}
	for {
		token, err := dec.ReadToken()
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, jsontext.ErrDuplicateName):
			return &DuplicateKeyError{Field: fieldOf(err)}
		case err != nil:
			return &NotJSONError{Cause: syntaxOf(err)}
		}
		if token.Kind() == jsontext.KindNumber && !exact(token.String()) {
			return &InexactNumberError{Field: string(dec.StackPointer())}
		}
		if dec.StackDepth() == 0 {
			if _, err := dec.ReadToken(); err != io.EOF {
				return &NotJSONError{Cause: errors.New("more follows after the document's end")}
			}
			return nil
		}
	}
}

func fieldOf(err error) string {
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return string(syntactic.JSONPointer)
	}
	return "/"
}

// syntaxOf keeps where a document broke and drops what stood there: it may be a secret.
func syntaxOf(err error) error {
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		where := "after byte " + strconv.FormatInt(syntactic.ByteOffset, 10)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("it ends too early, " + where)
		}
		return errors.New("invalid JSON " + where)
	}
	if errors.Is(err, io.EOF) {
		return errors.New("it is empty")
	}
	return err
}

// exact reports whether the decimal number literal means the same to every reader: it lies within ±(2^53−1), and a
// float64 gives its digits back. Larger ones are refused in every spelling, since the canonical form spells 1e20 as an
// integer.
func exact(literal string) bool {
	value, err := strconv.ParseFloat(literal, 64)
	if err != nil || math.Abs(value) > maxSafeInteger {
		return false
	}
	wantDigits, wantExp := decimal(literal)
	gotDigits, gotExp := decimal(strconv.FormatFloat(value, 'e', -1, 64))
	return wantDigits == gotDigits && (wantDigits == "" || wantExp == gotExp)
}

// decimal brings a literal to digits without outer zeros and the power of ten that its last digit stands for. The
// caller has made sure that the exponent is one a float64 can have.
func decimal(literal string) (digits string, exponent int) {
	mantissa, exp, _ := strings.Cut(strings.ToLower(strings.TrimLeft(literal, "+-")), "e")
	exponent, _ = strconv.Atoi(exp)
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	return trimmed, exponent + len(digits) - len(trimmed)
}
