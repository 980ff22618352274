package answer

import (
	"iter"
	"testing"

	"berth/coordinator/history"
	berthv1 "berth/shared/gen/berth/v1"
)

// Where the state fills a page to the last place, the next one begins with the newest row of the history. No row is left out or told twice.
func TestThePagesOfThePastHaveEachRowOnce(t *testing.T) {
	const newest = 3
	from := func(before history.Place) iter.Seq2[history.Row, error] {
		return func(yield func(history.Row, error) bool) {
			for index := uint64(newest); index > 0; index-- {
				row := history.Row{Place: history.Place{Index: index}}
				if row.Compare(before) < 0 && !yield(row, nil) {
					return
				}
			}
		}
	}
	before := history.Place{Index: newest + 1}
	var all []uint64
	for limit, more := 0, true; more; limit = 1 {
		part, next, err := PartOf(t.Context(), from(before), before, limit, func(row *history.Row) (uint64, bool) { return row.Index, true })
		if err != nil || len(part) > limit || len(all) > newest {
			t.Fatalf("a page of %d has %v, and there were %v before: %v", limit, part, all, err)
		}
		all = append(all, part...)
		if more = next != ""; more {
			page, err := PageOf(&berthv1.ListHistoryRequest{PageToken: next}, DefaultList)
			if err != nil {
				t.Fatal(err)
			}
			at, err := page.InPast()
			if err != nil || at == nil {
				t.Fatalf("the token of the next page is of %v: %v", at, err)
			}
			before = *at
		}
	}
	if len(all) != newest || all[0] != newest || all[newest-1] != 1 {
		t.Errorf("the pages have %v", all)
	}
}
