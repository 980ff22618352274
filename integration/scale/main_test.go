package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Every figure can be taken, and the slope of what does not grow is none.
func TestEveryFigureIsTaken(t *testing.T) {
	heap, profile := filepath.Join(t.TempDir(), "heap"), filepath.Join(t.TempDir(), "profile")
	o := order{sizes: []int{20, 60}, figures: figures, profile: profile, heap: heap}
	table, err := o.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if written, err := os.Stat(heap); err != nil || written.Size() == 0 {
		t.Errorf("no profile of the heap is written: %v", err)
	}
	for _, first := range []string{profile + ".1", profile + ".2"} {
		if written, err := os.Stat(first); err != nil || written.Size() == 0 {
			t.Errorf("no profile of a timed part is written: %v", err)
		}
	}
	for i, one := range figures {
		for _, value := range table[i] {
			if value <= 0 && one.name != "IDLE" {
				t.Errorf("%s is %v", one.name, value)
			}
		}
	}
	if err := o.tell(table); err != nil {
		t.Fatal(err)
	}
	if flat, steep := slopeOf(1000, 10_000, 5, 5), slopeOf(1000, 10_000, 5, 50); flat != 0 || steep < 0.99 || steep > 1.01 {
		t.Errorf("slopes %v and %v", flat, steep)
	}
}
