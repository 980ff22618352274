package column

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A column is the slice that it was made of, but for the values that were set since; and columns that were made before stay as they are.
func TestAColumnIsASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.SampledFrom([]int{0, 1, InPart - 1, InPart, InPart + 1, 3*InPart + 7}).Draw(t, "values")
		want := make([]int, count)
		for i := range want {
			want[i] = i
		}
		column := Of(slices.Clone(want)...)
		type before struct {
			column Column[int]
			was    []int
		}
		var all []before
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			all = append(all, before{column: column, was: slices.Clone(want)})
			shared, differs := Share(&column), false
			for range rapid.IntRange(0, 2*min(count, 3)).Draw(t, "at once") {
				at, value := rapid.IntRange(0, count-1).Draw(t, "at"), rapid.IntRange(0, count).Draw(t, "value")
				differs = differs || want[at] != value
				shared.Set(at, value)
				want[at] = value
			}
			if shared.Changed() != differs {
				t.Fatalf("it has changed: %t, not %t", shared.Changed(), differs)
			}
			if rapid.IntRange(0, 3).Draw(t, "another end") == 0 {
				from, values := rapid.IntRange(0, len(want)).Draw(t, "from"), rapid.SliceOfN(rapid.Int(), 0, 2*InPart).Draw(t, "end")
				column, want = column.Ending(from, values...), append(slices.Clone(want[:from]), values...)
				count = len(want)
			}
		}
		all = append(all, before{column: column, was: want})
		copied := column.Clone()
		for i := range count {
			copied.Set(i, -1)
		}
		for _, one := range all {
			isSlice(t, one.column, one.was)
		}
	})
}

// isSlice fails unless each way to read a column gives what a slice has.
func isSlice(t *rapid.T, column Column[int], want []int) {
	if !column.Given() || column.Len() != len(want) || column.IsZero() != (len(want) == 0) || !slices.Equal(column.Slice(), want) {
		t.Fatalf("%v of %d, not %v", column.Slice(), column.Len(), want)
	}
	reached := 0
	for i, value := range column.All() {
		if value != want[i] || column.At(i) != value || i != reached {
			t.Fatalf("%d at %d, not %d", value, i, want[i])
		}
		reached++
	}
	var pieces []int
	for len(pieces) < len(want) {
		pieces = append(pieces, column.From(len(pieces))...)
	}
	filled := make([]int, len(want))
	column.CopyTo(filled)
	if reached != len(want) || !slices.Equal(pieces, want) || !slices.Equal(filled, want) {
		t.Fatalf("%d of %d values are met, in pieces %v, copied %v", reached, len(want), pieces, filled)
	}
	if len(want) > 0 {
		places := []int{0, len(want) / 2, len(want) - 1}
		if got := column.Choose(places).Slice(); !slices.Equal(got, []int{want[places[0]], want[places[1]], want[places[2]]}) {
			t.Fatalf("%v at %v", got, places)
		}
	}
	written, err := json.Marshal(column)
	if err != nil {
		t.Fatal(err)
	}
	if slice, _ := json.Marshal(want); string(written) != string(slice) {
		t.Fatalf("it is written %s, a slice %s", written, slice)
	}
	var read Column[int]
	if err := json.Unmarshal(written, &read); err != nil || !read.Equal(column) {
		t.Fatalf("%s is read as %v: %v", written, read.Slice(), err)
	}
}

// A column that was not given stays so in the log, and where nodes are chosen.
func TestAColumnThatWasNotGivenStaysSo(t *testing.T) {
	var none Column[float64]
	written, err := json.Marshal(none)
	if err != nil || string(written) != "null" || none.Given() || none.Choose([]int{}).Given() || none.Clone().Given() || none.Len() != 0 {
		t.Fatalf("%s, %v, %+v", written, err, none)
	}
	var read Column[float64]
	if err := json.Unmarshal(written, &read); err != nil || read.Given() || read.Equal(Of([]float64{}...)) {
		t.Fatalf("%+v: %v", read, err)
	}
}

// What is looked for in a column in order is found where a slice has it.
func TestAColumnInOrderIsSearched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := make([]int, rapid.SampledFrom([]int{0, 1, InPart, 2*InPart + 3}).Draw(t, "values"))
		for i := range values {
			values[i] = 2 * i
		}
		wanted := rapid.IntRange(-1, 2*len(values)+1).Draw(t, "wanted")
		at, found := Of(values...).Search(func(v int) bool { return v > wanted }, func(v int) bool { return v == wanted })
		if place, there := slices.BinarySearch(values, wanted); at != place || found != there {
			t.Fatalf("%d of %d is found at %d, %t", wanted, len(values), at, found)
		}
	})
}
