package column

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"berth/shared/units"
)

// What encoding/json writes of a slice is what a column writes, to the last byte: records are hashed as they are written.
func TestAColumnIsWrittenAndReadAsItsSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		floats := rapid.Custom(func(t *rapid.T) float64 {
			if rapid.Bool().Draw(t, "any bits") {
				return math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
			}
			return rapid.SampledFrom([]float64{
				0, math.Copysign(0, -1), 1e-6, 9.9e-7, -1e-9, 1e-10, 1e20, 1e21, -1e22, 1e100, 0.1, 2.5, math.MaxFloat64 / 4, math.MaxFloat64,
				math.SmallestNonzeroFloat64,
			}).Draw(t, "value")
		})
		same(t, rapid.SliceOf(floats).Draw(t, "floats"))
		same(t, rapid.SliceOf(rapid.Int()).Draw(t, "ints"))
		same(t, rapid.SliceOf(rapid.Int64()).Draw(t, "long ints"))
		same(t, rapid.SliceOf(rapid.Map(rapid.Int64(), func(i int64) units.Bytes { return units.Bytes(i) })).Draw(t, "bytes"))
		same(t, rapid.SliceOf(rapid.String()).Draw(t, "texts"))
	})
	same(t, []float64(nil))
	same(t, []int{})
}

func same[T comparable](t rapid.TB, values []T) {
	t.Helper()
	column := Of(values...)
	want, wrong := json.Marshal(values)
	got, err := column.MarshalJSON()
	if (err == nil) != (wrong == nil) || err == nil && string(got) != string(want) {
		t.Fatalf("%s (%v), the slice is %s (%v)", got, err, want, wrong)
	}
	if err == nil {
		readAsSlice[T](t, string(got))
	}
}

// readAsSlice compares what a column reads with what encoding/json reads into a slice.
func readAsSlice[T comparable](t rapid.TB, text string) {
	t.Helper()
	var want []T
	var got Column[T]
	wrong, err := json.Unmarshal([]byte(text), &want), got.UnmarshalJSON([]byte(text))
	if (err == nil) != (wrong == nil) {
		t.Fatalf("%s: %v, as a slice %v", text, err, wrong)
	}
	if err == nil && !reflect.DeepEqual(got, Of(want...)) {
		t.Fatalf("%s is %v, as a slice %v", text, got.Slice(), want)
	}
}

// What is not plainly a list of numbers is read, or refused, as a slice is.
func TestAColumnReadsWhatASliceReads(t *testing.T) {
	words := []string{
		"[", "]", ",", "0", "1", "-", "+", ".", "e", "E", "12", "007", "1e3", "1E+2", "-0", "0.50", "1.", ".5", " ", "null", "0x1p4",
		"1_0", "inf", "NaN", "9223372036854775807", "9223372036854775808", "1e400", `"1"`, "{}", "[]", "\n",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		for _, word := range rapid.SliceOfN(rapid.SampledFrom(words), 0, 6).Draw(t, "words") {
			text += word
		}
		for _, one := range []string{text, "[" + text + "]", "[1," + text + "]"} {
			readAsSlice[float64](t, one)
			readAsSlice[int](t, one)
			readAsSlice[int64](t, one)
			readAsSlice[units.Bytes](t, one)
			readAsSlice[string](t, one)
		}
	})
}
