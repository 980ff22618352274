package onlookers

import (
	"context"
	"errors"
	"path/filepath"

	"berth/integration/bench/report"
)

// Goals are those that All measures.
var Goals = []string{"W1", "W2", "W3", "H1", "H2"}

// seconds are how many busy ones are written into a history.
const seconds = 300

// All takes all rows, by the program that was built, with data in a folder.
func All(ctx context.Context, program, folder string, quick bool) ([]report.Row, error) {
	size, busy := Goal, seconds
	if quick {
		size, busy = Quick, seconds/30
	}
	rows, err := Measure(ctx, program, filepath.Join(folder, "onlookers"), size)
	written, failed := History(ctx, filepath.Join(folder, "history"), busy)
	return append(rows, written...), errors.Join(err, failed)
}
