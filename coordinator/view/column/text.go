package column

import (
	"math"
	"strconv"
	"strings"

	"berth/shared/units"
)

// A decision has two dozen columns of numbers, which every member writes and reads. encoding/json takes several times as long for that,
// since it looks at each value for what it might be. What is not a plain list of numbers is left to it.

// textOf is a list of numbers as encoding/json writes it, to the last byte; false: it is none.
func textOf(list any) (text []byte, plain bool) {
	switch values := list.(type) {
	case []float64:
		return written(values, appendFloat)
	case []int:
		return written(values, appendInt[int])
	case []int64:
		return written(values, appendInt[int64])
	case []units.Bytes:
		return written(values, appendInt[units.Bytes])
	default:
		return nil, false
	}
}

func written[T any](values []T, add func([]byte, T) ([]byte, bool)) (text []byte, plain bool) {
	const room = 12 // of most values
	if values == nil {
		return nil, false
	}
	text = append(make([]byte, 0, 2+room*len(values)), '[')
	for i, value := range values {
		if i > 0 {
			text = append(text, ',')
		}
		if text, plain = add(text, value); !plain {
			return nil, false
		}
	}
	return append(text, ']'), true
}

func appendInt[T ~int | ~int64](text []byte, value T) ([]byte, bool) {
	return strconv.AppendInt(text, int64(value), 10), true
}

// appendFloat writes as ES6 does, which encoding/json follows: with an exponent from 21 digits on, and that without a leading zero.
func appendFloat(text []byte, value float64) ([]byte, bool) {
	const small, large = 1e-6, 1e21
	amount := math.Abs(value)
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return nil, false
	case amount != 0 && (amount < small || amount >= large):
		text = strconv.AppendFloat(text, value, 'e', -1, 64)
		if n := len(text); text[n-4] == 'e' && text[n-2] == '0' {
			text[n-2] = text[n-1]
			text = text[:n-1]
		}
		return text, true
	default:
		return strconv.AppendFloat(text, value, 'f', -1, 64), true
	}
}

// readFrom reads a list of numbers without blanks; false: it is none, or not plainly so.
func readFrom(list any, text []byte) bool {
	switch values := list.(type) {
	case *[]float64:
		return read(values, string(text), func(number string) (float64, error) { return strconv.ParseFloat(number, 64) })
	case *[]int:
		return read(values, string(text), strconv.Atoi)
	case *[]int64:
		return read(values, string(text), readInt[int64])
	case *[]units.Bytes:
		return read(values, string(text), readInt[units.Bytes])
	default:
		return false
	}
}

func readInt[T ~int64](number string) (T, error) {
	value, err := strconv.ParseInt(number, 10, 64)
	return T(value), err
}

func read[T any](values *[]T, text string, one func(string) (T, error)) bool {
	if len(text) < len("[]") || text[0] != '[' || text[len(text)-1] != ']' {
		return false
	}
	text = text[1 : len(text)-1]
	*values = make([]T, 0, strings.Count(text, ",")+1)
	for more := len(text) > 0; more; {
		var number string
		number, text, more = strings.Cut(text, ",")
		if !isNumber(number) {
			return false
		}
		value, err := one(number)
		if err != nil {
			return false
		}
		*values = append(*values, value)
	}
	return true
}

// isNumber tells whether a text is a number in JSON: strconv takes more for one.
func isNumber(text string) bool {
	text = strings.TrimPrefix(text, "-")
	whole := digits(text)
	if whole == 0 || whole > 1 && text[0] == '0' {
		return false
	}
	text = text[whole:]
	if strings.HasPrefix(text, ".") {
		after := digits(text[1:])
		if after == 0 {
			return false
		}
		text = text[1+after:]
	}
	if text == "" {
		return true
	}
	if text[0] != 'e' && text[0] != 'E' {
		return false
	}
	if text = text[1:]; text != "" && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	return text != "" && digits(text) == len(text)
}

// digits is how many digits a text begins with.
func digits(text string) int {
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	return n
}
