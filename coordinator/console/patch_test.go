package console

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// patched does what live.js does with hunks.
func patched(old string, hunks []hunk) string {
	lines := slices.Collect(strings.Lines(old))
	var fresh strings.Builder
	from := 0
	for _, one := range hunks {
		fresh.WriteString(strings.Join(lines[from:one.At], ""))
		fresh.WriteString(one.Lines)
		from = one.At + one.Drop
	}
	return fresh.String() + strings.Join(lines[from:], "")
}

// Whatever changes, the hunks make the new text of the old one.
func TestHunksMakeTheNewText(t *testing.T) {
	line := rapid.SampledFrom([]string{"", "a", "b", "c", "<tr data-key=1>", "<tr data-key=2>", "<tr data-key=3>", "</tr>", "same", "same"})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 0, 40).Draw(t, "lines"), "\n") + rapid.SampledFrom([]string{"", "\n"}).Draw(t, "end")
	})
	rapid.Check(t, func(t *rapid.T) {
		old, fresh := text.Draw(t, "old"), text.Draw(t, "fresh")
		hunks := differences([]byte(old), []byte(fresh))
		if got := patched(old, hunks); got != fresh {
			t.Fatalf("%q and %v make %q, want %q", old, hunks, got, fresh)
		}
		if old == fresh && len(hunks) > 0 {
			t.Fatalf("nothing has changed, and there are %v", hunks)
		}
	})
}

// rows are a table as the map has it.
func rows(names []int, figure func(int) string) []byte {
	var text bytes.Buffer
	for _, name := range names {
		fmt.Fprintf(&text, "<tr data-key=\"n%d\">\n<th>node%d</th>\n<td>up</td>\n<td>%s</td>\n</tr>\n", name, name, figure(name))
	}
	return text.Bytes()
}

// A cell that has changed is told without its row, and a row that comes, goes or moves without the others.
func TestHunksAreSmall(t *testing.T) {
	same := func(int) string { return "12 s" }
	names := make([]int, 1000)
	for i := range names {
		names[i] = i
	}
	old := rows(names, same)
	moved := slices.Concat([]int{700}, names[:700], names[701:])
	for what, c := range map[string]struct {
		fresh []byte
		hunks int
		most  int // lines
	}{
		"a cell of each row": {rows(names, func(int) string { return "13 s" }), 1000, 1000},
		"one row that comes": {rows(append([]int{5000}, names...), same), 1, 5},
		"one row that goes":  {rows(names[1:], same), 1, 5},
		"one row that moves": {rows(moved, same), 2, 10},
	} {
		hunks := differences(old, c.fresh)
		lines := 0
		for _, one := range hunks {
			lines += max(one.Drop, strings.Count(one.Lines, "\n"))
		}
		if len(hunks) != c.hunks || lines > c.most || patched(string(old), hunks) != string(c.fresh) {
			t.Errorf("%s: %d hunks of %d lines", what, len(hunks), lines)
		}
	}
}

// Pieces that were packed apart make one whole stream, whichever of them somebody gets.
func TestPackedPiecesMakeOneStream(t *testing.T) {
	pieces := []event{pack([]byte("retry: 2000\n\n")), message{At: "now"}.event(), pack(bytes.Repeat([]byte("data: x\n\n"), 1e4)), {}}
	for _, order := range [][]int{{0, 1, 2, 3}, {0, 3, 2, 2, 1}, {}} {
		r := httptest.NewRequest(http.MethodGet, "/live/", nil)
		r.Header.Set("Accept-Encoding", "gzip, deflate, br")
		w := httptest.NewRecorder()
		to, want := newPipe(w, r), ""
		for _, i := range order {
			want += string(pieces[i].plain)
			if !to.send(pieces[i]) {
				t.Fatal("it was not sent")
			}
		}
		to.end()
		unpacked, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(unpacked); err != nil || string(got) != want {
			t.Errorf("%v: %d bytes, want %d: %v", order, len(got), len(want), err)
		}
	}
}

func TestWhoUnpacks(t *testing.T) {
	for accepted, want := range map[string]bool{
		"gzip": true, "deflate, GZIP": true, "br;q=1, gzip;q=0.5": true, "gzip; q=0.05": true,
		"": false, "identity": false, "gzip;q=0": false, "gzip; q=0.000": false, "xgzip": false,
	} {
		r := httptest.NewRequest(http.MethodGet, "/live/", nil)
		r.Header.Set("Accept-Encoding", accepted)
		if unpacks(r) != want {
			t.Errorf("%q: %t", accepted, !want)
		}
	}
}

// Who has the content before is sent what has changed. Who has none, or an older one, is sent all of it.
func TestWhoMissedAnEditionGetsAll(t *testing.T) {
	f := &feed{changed: make(chan struct{})}
	var last []byte
	f.publish(rows([]int{1, 2}, func(int) string { return "old" }), &last, "1", nil)
	f.publish(rows([]int{1, 2}, func(int) string { return "new" }), &last, "2", nil)
	now, _ := f.now()
	for version, want := range map[int]string{0: `"content":`, 1: `"patch":[{"at":3,"drop":1,"lines":"<td>new</td>\n"}`, 2: ""} {
		events := now.since(version)
		if first := string(events[0].plain); !strings.Contains(first, want) || version == 2 && len(events) != 1 ||
			version == 1 && strings.Contains(first, "node1") {
			t.Errorf("who has edition %d is sent %s", version, first)
		}
	}
	f.publish(rows([]int{1, 2}, func(int) string { return "newer" }), &last, "3", nil)
	now, _ = f.now()
	if first := string(now.since(1)[0].plain); !strings.Contains(first, `"content":`) || !strings.Contains(first, "newer") {
		t.Errorf("who has an edition of before the last is sent %s", first)
	}
}
