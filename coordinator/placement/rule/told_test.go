package rule

import (
	"testing"
	"time"

	"berth/coordinator/view"
)

// Of a node that has told nothing, no verdict has an age: it would be that of the epoch.
func TestWhatWasNeverToldHasNoAge(t *testing.T) {
	in := &Input{Now: 5e9, Columns: &view.Columns{Figures: view.Figures{
		Known: []view.Known{0, view.KnowsInventory}, InventoryAt: view.ColumnOf[int64](0, 2e9),
	}}}
	if verdict := in.AsTold(0, Refuse("unknown")); verdict.Aged {
		t.Errorf("a node that has told nothing: %+v", verdict)
	}
	if verdict := in.AsTold(1, Refuse("unknown")); !verdict.Aged || verdict.Age != 3*time.Second {
		t.Errorf("a node that told 3 s ago: %+v", verdict)
	}
}
