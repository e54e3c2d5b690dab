package canon

import (
	"strconv"
	"strings"
)

// MaxExponent bounds the decimal exponent of a number: a number is an integer
// without trailing zeros times a power of ten, and that power is between
// -MaxExponent and MaxExponent.
const MaxExponent = 4096

// appendNumber appends a valid JSON number as its significant digits and a
// decimal exponent: 1.50 is 15e-1, 100 is 1e2, and any zero is 0.
func appendNumber(dst []byte, text string) ([]byte, error) {
	negative := strings.HasPrefix(text, "-")
	mantissa := strings.TrimPrefix(text, "-")
	var exponent int64
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		var err error
		// 32 bits, so that the sum below cannot overflow.
		if exponent, err = strconv.ParseInt(mantissa[i+1:], 10, 32); err != nil && !isZero(mantissa[:i]) {
			return nil, ErrExponent
		}
		mantissa = mantissa[:i]
	}
	if isZero(mantissa) {
		return append(dst, '0'), nil
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	significant := strings.TrimRight(digits, "0")
	exponent += int64(len(digits) - len(significant) - len(fraction))
	if exponent < -MaxExponent || exponent > MaxExponent {
		return nil, ErrExponent
	}
	if negative {
		dst = append(dst, '-')
	}
	dst = append(append(dst, significant...), 'e')
	return strconv.AppendInt(dst, exponent, 10), nil
}

// isZero says whether a mantissa has no digit but zeros.
func isZero(mantissa string) bool {
	return strings.Trim(mantissa, "0.") == ""
}
